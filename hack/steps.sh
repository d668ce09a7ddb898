#!/usr/bin/env bash
# Makes the targets of a tier, one after the other: for each a line with its name, its time and the last line it said,
# and if it fails all that it said. Usage: hack/steps.sh TARGET…
set -u
TIMEFORMAT=%1R
log=$(mktemp) clock=$(mktemp)
trap 'rm -f "$log" "$clock"' EXIT
for step; do
  { time "${MAKE:-make}" --no-print-directory "$step" >"$log" 2>&1; } 2>"$clock"
  status=$?
  if ((status)); then
    cat "$log" >&2
    printf '%-20s %6ss  FAILED\n' "$step" "$(<"$clock")" >&2
    exit $status
  fi
  printf '%-20s %6ss  %s\n' "$step" "$(<"$clock")" "$(tail -n 1 "$log")"
done
echo "$# passed, 0 failed"
