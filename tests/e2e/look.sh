# Reads what the answer to an eviction depends on. Sourced by ask.sh, which has set kubectl, namespace and vm.
# shellcheck shell=bash disable=SC2034,SC2154  # the variables are ask.sh's

# get is kubectl get, whose complaint becomes the verdict.
get() {
  local complaint
  complaint=$(mktemp)
  "$kubectl" get --namespace "$namespace" "$@" 2>"$complaint" ||
    fail "cannot be asked about, kubectl get says: $(cat "$complaint" && rm "$complaint")"
  rm "$complaint"
}

# look_at_vm reads the VM and its VMI, which has the same name.
look_at_vm() {
  local fields='{.items[0].spec.template.spec.evictionStrategy}|{.items[1].spec.evictionStrategy}|'
  fields+='{.items[1].metadata.uid}|{.items[1].status.phase}|{.items[1].status.evacuationNodeName}|'
  fields+='{.items[1].status.conditions[?(@.type=="LiveMigratable")].status}'
  fields=$(get "virtualmachines.kubevirt.io/$vm" "virtualmachineinstances.kubevirt.io/$vm" -o jsonpath="$fields")
  IFS='|' read -r own_strategy strategy vmi_uid phase marked migratable <<<"$fields"
}

# look_at_launchers leaves out those that have ended, of which a VMI that has migrated may have some; KubeVirt lets them
# go unasked, too (pod-eviction-admitter.go:94).
look_at_launchers() {
  local list
  list=$(get pods --selector "kubevirt.io=virt-launcher,kubevirt.io/created-by=$vmi_uid" \
    --field-selector status.phase!=Succeeded,status.phase!=Failed \
    -o jsonpath='{range .items[*]}{.metadata.name}|{.metadata.uid}|{.metadata.deletionTimestamp}{"\n"}{end}')
  launchers=()
  [ -z "$list" ] || mapfile -t launchers <<<"$list"
  IFS='|' read -r launcher launcher_uid deleted <<<"${launchers[0]-}"
}
