#!/usr/bin/env bash
# helm lint --strict over every ci values set, below Kubernetes 1.35 and from it.
set -euo pipefail
chart=charts/kubevirt
sets=0
for values in "$chart"/ci/*-values.yaml; do
  [ -e "$values" ] || { echo "$chart/ci holds no *-values.yaml, so nothing would be linted"; exit 1; }
  for version in 1.34.2 1.35.0; do
    "${HELM:-bin/helm}" lint --strict --quiet "$chart" --values "$values" --kube-version "$version"
  done
  sets=$((sets + 1))
done
echo "$sets values sets, 2 Kubernetes versions"
