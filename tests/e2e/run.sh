#!/usr/bin/env bash
# Runs the suite and says which branches it came to. What it is told stands in the environment: KUBECONFIG, and as it
# may be VM, STORAGE_CLASS, IMAGE, REQUIRE_BRANCHES and KUBECTL. Usage: tests/e2e/run.sh CHAINSAW DRAIN_PREVIEW
set -euo pipefail
chainsaw=$1 DRAIN_PREVIEW=$PWD/$2 # chainsaw calls it from other folders
here=$(dirname "$0")
mapfile -t branches < <(sed -n 's|^[A-Z].*: ||p' "$here/branches.yaml" | uniq)

refuse() {
  echo "make e2e: $1" >&2
  exit 2
}

[ -n "${KUBECONFIG-}" ] || refuse "no KUBECONFIG: name the cluster to ask, make e2e KUBECONFIG=path"
[ -r "$KUBECONFIG" ] || refuse "KUBECONFIG is $KUBECONFIG, which cannot be read"
KUBECTL=${KUBECTL:-kubectl}
found=$(command -v "$KUBECTL") || refuse "$KUBECTL is not there: install kubectl, or name one, KUBECTL=path"
KUBECTL=$(cd "$(dirname "$found")" && pwd)/$(basename "$found")
IMAGE=${IMAGE:-quay.io/kubevirt/cirros-container-disk-demo:$(sed -n 's/^appVersion: //p' "$here/../../charts/kubevirt/Chart.yaml")}
E2E_VERDICTS=$(mktemp)
trap 'rm -f "$E2E_VERDICTS"' EXIT
export KUBECTL DRAIN_PREVIEW IMAGE E2E_VERDICTS
required=()
[ -z "${REQUIRE_BRANCHES-}" ] || IFS=', ' read -ra required <<<"$REQUIRE_BRANCHES"
for branch in ${required[@]+"${required[@]}"}; do
  [[ " ${branches[*]} " == *" $branch "* ]] || refuse "REQUIRE_BRANCHES names $branch; the branches are: ${branches[*]}"
done

where=()
tests=("$here/container-disk" "$here/bridge-network" "$here/opt-out-live-migrate" "$here/opt-out-external")
[ -z "${STORAGE_CLASS-}" ] || tests+=("$here/storage-class")
if [ -n "${VM-}" ]; then
  [[ "$VM" == ?*/?* ]] || refuse "VM is $VM; name it as namespace/name"
  where=(--namespace "${VM%%/*}")
  tests=("$here/named-vm")
fi

failed=0
"$chainsaw" test --config "$here/.chainsaw.yaml" --no-color ${where[@]+"${where[@]}"} "${tests[@]}" || failed=1

fail() {
  printf '%-27s %s\n' FAILED "$1"
  failed=1
}

printf '\n%s\n' "The answers, by their branch:"
sort "$E2E_VERDICTS"
asked=$(wc -l <"$E2E_VERDICTS")
((asked == ${#tests[@]})) || fail "$((asked)) of ${#tests[@]} VMs were asked about: chainsaw says above what became of the rest"
for branch in ${required[@]+"${required[@]}"}; do
  grep -q "^$branch " "$E2E_VERDICTS" || fail "no answer came to the branch $branch: name a VM or a STORAGE_CLASS that leads to it"
done
exit $failed
