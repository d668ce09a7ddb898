#!/usr/bin/env bash
# Asks a cluster whether it would let a running VM's launcher go, and judges the answer by the strategy that the VMI
# carries and whether it can migrate. The verdict is a line in $E2E_VERDICTS.
# Usage: ask.sh NAMESPACE VM [BRANCH: the one that it must come to]
set -euo pipefail
namespace=$1 vm=$2 required=${3-}
kubectl=${KUBECTL:-kubectl}
here=$(dirname "$0")
. "$here/look.sh"
. "$here/expected.sh"
. "$here/evict.sh"

verdict() { printf '%-27s %s/%s: %s\n' "$1" "$namespace" "$vm" "$2" | tee -a "${E2E_VERDICTS:-/dev/null}"; }

fail() {
  verdict FAILED "$1" >&2
  exit 1
}

look_at_vm
[ "$phase" = Running ] || fail "is ${phase:-in no phase}, not Running: start it, or name another"
due=${own_strategy:-LiveMigrateIfPossible} from=${own_strategy:+VM}
[ "$strategy" = "$due" ] || fail "carries the eviction strategy '${strategy:-none at all}', not the $due of its ${from:-platform}: restart it \
once if it is from before the switch (docs/eviction.md)"
[ -z "$marked" ] || fail "is being evacuated from node $marked already: ask again when it has moved"
expect
[ "${required:-$branch}" = "$branch" ] || fail "comes to the branch $branch, with LiveMigratable=$migratable; it was made to be asked as $required"
look_at_launchers
[ ${#launchers[@]} = 1 ] || fail "has ${#launchers[@]} launchers, not 1${launchers[*]+: ${launchers[*]%%|*}}"
[ -z "$deleted" ] || fail "has a launcher, $launcher, that is being deleted already"

was=$launcher_uid
asked_about=$vmi_uid
evict
asked="the eviction of a VMI with $strategy and LiveMigratable=$migratable"
if [ "$answered" != "$status" ] || [[ "$said" != *"$message" ]]; then
  fail "$asked was answered ${answered:-nothing}, $said; expected $status, $message"
fi

look_at_vm
[ "$vmi_uid" = "$asked_about" ] || fail "was replaced by another VMI during a dry run"
[ -z "$marked" ] || fail "was marked for evacuation from node $marked, by a dry run"
look_at_launchers
[ "$launcher_uid" = "$was" ] || fail "had its launcher replaced during a dry run: uid $was before, ${launcher_uid:-no launcher} after"
[ ${#launchers[@]} = 1 ] || fail "has ${#launchers[@]} launchers after a dry run, not 1: ${launchers[*]%%|*}"
[ -z "$deleted" ] || fail "had its launcher, $launcher, deleted by a dry run"
verdict "$branch" "$asked is answered $status, $message"
