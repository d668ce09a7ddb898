# What KubeVirt v1.9.0 must answer when a launcher is evicted (pkg/virt-api/webhooks/validating-webhook/admitters/
# pod-eviction-admitter.go:146-182), and the name of that branch for REQUIRE_BRANCHES. Sourced by ask.sh.
# shellcheck shell=bash disable=SC2034,SC2154  # the variables are ask.sh's

branches=(migratable non-migratable live-migrate-migratable live-migrate-non-migratable external none)

allowed="it may go"

expect() {
  local evacuation="denied the request: Eviction triggered evacuation of VMI \"$namespace/$vm\""
  local stuck="denied the request: VMI $vm is configured with an eviction strategy but is not live-migratable"
  case $strategy/$migratable in
    LiveMigrateIfPossible/True) branch=migratable status=429 message=$evacuation ;;
    LiveMigrateIfPossible/False) branch=non-migratable status=201 message=$allowed ;;
    LiveMigrate/True) branch=live-migrate-migratable status=429 message=$evacuation ;;
    LiveMigrate/False) branch=live-migrate-non-migratable status=429 message=$stuck ;;
    External/True | External/False) branch=external status=429 message=$evacuation ;;
    None/True | None/False) branch=none status=201 message=$allowed ;;
    */True | */False) fail "carries the eviction strategy '$strategy', which KubeVirt v1.9.0 does not know" ;;
    *) fail "has the condition LiveMigratable '${migratable:-missing}', which should be True or False: whether it can migrate decides what a drain does, so ask again once virt-handler has said" ;;
  esac
}
