#!/usr/bin/env bash
# Bundles the chart, and pushes it where one is named: $VERSION, $SIGN_KEY, $SIGN_KEYRING, $ALLOW_DIRTY as make package
# takes them. Usage: hack/package.sh [push], which pushes to $REGISTRY.
set -euo pipefail
archive=$(bin/package -chart "$CHART" ${VERSION:+-version "$VERSION"} ${SIGN_KEY:+-sign-key "$SIGN_KEY"} \
  ${SIGN_KEYRING:+-keyring "$SIGN_KEYRING"} "-allow-dirty=${ALLOW_DIRTY:-0}")
if [[ ${1:-} == push ]]; then
  exec bin/push -archive "$archive" -registry "${REGISTRY:-}"
fi
printf '%s\n' "$archive"
