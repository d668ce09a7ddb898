#!/usr/bin/env bash
# Runs the rehearsal, or the scenarios whose names hold RUN in any case, and shows its verdicts as they come; the
# report is in _out/rehearsal.md. MANY=50,100,200 drains that many VMs, one drain after the other; without it one drain
# of 200. Usage: hack/rehearsal.sh [RUN]
set -euo pipefail
cd "$(dirname "$0")/.."
exec hack/gotest rehearsal tests/kubevirt/rehearsal -timeout 15m ${1:+-run "(?i:$1)"} ${MANY:+-args "-many=$MANY"}
