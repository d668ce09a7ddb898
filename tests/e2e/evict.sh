# Asks for the eviction of a launcher in a dry run, which KubeVirt answers as a real one and does not act on
# (pod-eviction-admitter.go:68-77, 201-203). Sourced by ask.sh.
# shellcheck shell=bash disable=SC2034,SC2154  # the variables are ask.sh's

# evict sets answered to the HTTP status and said to what kubectl made of it. Only kubectl's log has the status: KubeVirt
# refuses without a reason that kubectl could print (pod-eviction-admitter.go:219-227).
evict() {
  local url="/api/v1/namespaces/$namespace/pods/$launcher/eviction" log
  local eviction='{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "%s", "name": "%s"},
    "deleteOptions": {"dryRun": ["All"]}}'
  # shellcheck disable=SC2059  # the format is the line above
  if log=$(printf "$eviction" "$namespace" "$launcher" | "$kubectl" create --raw "$url" -f - -v=6 2>&1); then
    said=$allowed
  else
    said=${log##*$'\n'}
  fi
  answered=$(sed -nE 's,^.*/eviction("? status="| )([0-9]{3}) .*$,\2,p' <<<"$log" | tail -n 1)
}
