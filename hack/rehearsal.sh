#!/usr/bin/env bash
# Runs the rehearsal, or the scenarios whose names hold $RUN in any case, and shows its verdicts as they come; the report
# is in _out/rehearsal.md, the timeline of the day of the switch in _out/day.md. MANY=50,100,200 drains that many VMs, one
# drain after the other; without it one drain of 200.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=tests/kubevirt/rehearsal
if [ -n "${RUN:-}" ]; then
  # TestStaysUp is make rehearsal-up.
  mapfile -t all < <(sed -n 's/^func \(Test[A-Za-z0-9]*\)(t .*/\1/p' "$folder"/*_test.go | grep -vx TestStaysUp)
  if ! grep -qiE -- "$RUN" < <(printf '%s\n' "${all[@]}"); then
    echo "RUN=$RUN: no scenario has that name; there are:" >&2
    printf '  %s\n' "${all[@]#Test}" >&2
    exit 1
  fi
else
  hack/gotest.sh controlplane tests/kubevirt -timeout 10m ./internal/controlplane
fi
export GOTESTSUM_FORMAT=standard-verbose
exec hack/gotest.sh rehearsal "$folder" -timeout 60m ${RUN:+-run "(?i:$RUN)"} ${MANY:+-args "-many=$MANY"}
