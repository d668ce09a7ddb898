#!/usr/bin/env bash
# Has kubectl drain-preview ask the cluster about a VM that runs. Its branch and the cluster's answer become a line in
# $E2E_VERDICTS. Usage: ask.sh NAMESPACE VM [BRANCH: the one that it must come to]
set -euo pipefail
namespace=$1 vm=$2 required=${3-}
complaint=$(mktemp)
trap 'rm -f "$complaint"' EXIT

verdict() { printf '%-27s %s/%s: %s\n' "$1" "$namespace" "$vm" "$2" | tee -a "${E2E_VERDICTS:-/dev/null}"; }

fail() {
  verdict FAILED "$1" >&2
  exit 1
}

fields='{range .vms[*]}{.evictionStrategy}|{.nextEvictionStrategy}|{.evictionStrategySource}|{.liveMigratable}|'
fields+='{.drain.outcome}|{.verified.agreed}|{.verified.said}|{.verified.expected}{"\n"}{end}'
# 1 and 3 are about the drain of the whole node, not about this answer; 4 is told better below.
answers=$("$DRAIN_PREVIEW" --verify --namespace "$namespace" --vm "$vm" --output "jsonpath=$fields" 2>"$complaint") || true
[ -n "$answers" ] || fail "cannot be asked about: $(tail -n 1 "$complaint")"
[[ "$answers" != *$'\n'* ]] || fail "has launchers on $(wc -l <<<"$answers") nodes, so it is migrating: ask again when it has moved"
IFS='|' read -r strategy next source migratable outcome agreed said expected <<<"$answers"

asked="the eviction of a VMI with $strategy and LiveMigratable=$migratable is answered $said"
[ -n "$agreed" ] || fail "has no launcher that could be asked about"
[ "$agreed" = true ] || fail "$asked; expected $expected"
once="restart it once if it is from before the switch (docs/eviction.md)"
[ "$source" != cluster ] || fail "carries no eviction strategy, which virt-api fills in when a VMI is created: $once"
[ "$strategy" = "${next:-$strategy}" ] || fail "carries the eviction strategy $strategy, and $next after a restart: $once"
[ "$source" = own ] || [ "$strategy" = LiveMigrateIfPossible ] ||
  fail "carries the eviction strategy $strategy of its cluster, not LiveMigrateIfPossible: $once"
branch=$(sed -n "s|^$strategy/$migratable: ||p" "$(dirname "$0")/branches.yaml")
[ -n "$branch" ] || fail "carries the eviction strategy $strategy, of which branches.yaml knows nothing"
[ "${required:-$branch}" = "$branch" ] || fail "comes to the branch $branch, with LiveMigratable=$migratable; it was made to be asked as $required"
verdict "$branch" "$asked; a drain: $outcome"
