#!/usr/bin/env bash
# Renders the chart, for $NAMESPACE and $KUBE_VERSION. $VALUES names values files, parted by blanks, or one file whose path
# may hold blanks.
set -euo pipefail
arguments=()
values() { # FILE, quoted as Helm reads it: it takes a list, parted by commas
  arguments+=(--values "\"${1//\"/\"\"}\"")
}
if [[ -f ${VALUES:-} ]]; then
  values "$VALUES"
else
  set -f # a name that holds * or [ is not a pattern
  for file in ${VALUES:-}; do values "$file"; done
fi
exec "$HELM" template kubevirt "$CHART" --namespace "$NAMESPACE" --kube-version "$KUBE_VERSION" ${arguments[@]+"${arguments[@]}"}
