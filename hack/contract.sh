#!/usr/bin/env bash
# Lets KubeVirt's own code judge the CR that the chart renders, at the release we ship and at the one that the upgrade
# comes from, and says how much was judged. Usage: hack/contract.sh [VALUES_FILE]
set -euo pipefail
export CGO_ENABLED=0 CONTRACT_VALUES=${1:-}
cd "$(dirname "$0")/../tests/kubevirt/contract"
# Without a package argument go test shows what the tests print, and the counts are part of the result.
output=$(go test -count=1) || { printf '%s\n' "$output"; exit 1; }
before=$(GOFLAGS="${GOFLAGS:-} -modfile=../go.v1.8.mod" go test -count=1 -tags kubevirt_1_8) || { printf '%s\n' "$before"; exit 1; }
printf '%s\n%s\n' "$before" "$output" | grep '^KubeVirt v'
