#!/usr/bin/env bash
# Lets KubeVirt's own code judge the CR that the chart renders, at the release we ship and at the one that the upgrade
# comes from, and says how much was judged. $VALUES names one more values file to render.
set -euo pipefail
cd "$(dirname "$0")/.."
if [[ -n ${VALUES:-} ]]; then
  CONTRACT_VALUES=$(realpath -- "$VALUES")
  export CONTRACT_VALUES
fi
judge() { # NAME ARGUMENT…: without a package argument go test shows what the tests print, and the counts are the result
  output=$(GOTESTSUM_FORMAT=standard-verbose hack/gotest.sh "$1" tests/kubevirt/contract "${@:2}" 2>&1) || { printf '%s\n' "$output"; exit 1; }
  grep '^KubeVirt v' <<<"$output"
}
GOFLAGS="${GOFLAGS:-} -modfile=../go.v1.8.mod" judge contract-v1.8 -tags kubevirt_1_8
judge contract-v1.9
