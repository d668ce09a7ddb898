#!/usr/bin/env bash
# Runs the rehearsal, or the scenarios whose names hold RUN in any case, and shows its verdicts as they come; the
# report is in _out/rehearsal.md. MANY=50,100,200 drains that many VMs at once; without it 200 are left out, which take
# two minutes more. Usage: hack/rehearsal.sh [RUN]
set -euo pipefail
export CGO_ENABLED=0
cd "$(dirname "$0")/../tests/kubevirt/rehearsal"
exec go test -count=1 -timeout 15m ${1:+-run "(?i)$1"} ${MANY:+-args "-many=$MANY"}
