#!/usr/bin/env bash
# Renders the chart, for $NAMESPACE and $KUBE_VERSION. $VALUES names values files, parted by blanks, or one file whose path
# may hold blanks.
set -euo pipefail
arguments=()
if [[ -f ${VALUES:-} ]]; then
  arguments=(--values "$VALUES")
else
  for file in ${VALUES:-}; do arguments+=(--values "$file"); done
fi
exec "$HELM" template kubevirt "$CHART" --namespace "$NAMESPACE" --kube-version "$KUBE_VERSION" ${arguments[@]+"${arguments[@]}"}
