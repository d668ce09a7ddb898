#!/usr/bin/env bash
# helm lint --strict over every ci values set, below Kubernetes 1.35 and from it.
set -euo pipefail
chart=charts/kubevirt
sets=0 versions=0
for values in "$chart"/ci/*-values.yaml; do
  [ -e "$values" ] || { echo "$chart/ci holds no *-values.yaml, so nothing would be linted" >&2; exit 1; }
  versions=0
  while read -r version; do
    "${HELM:-bin/helm}" lint --strict --quiet "$chart" --values "$values" --kube-version "$version"
    versions=$((versions + 1))
  done <internal/chart/kube-versions
  sets=$((sets + 1))
done
echo "$sets values sets, $versions Kubernetes versions"
