#!/usr/bin/env bash
# Makes a release twice, each time from a clone of its own, and compares them to the byte; then krew, Helm and a shell install
# it. It is left in _out/release, and nothing is published. Usage: hack/release_dry_run.sh, with $VERSION (Chart.yaml's)
set -euo pipefail
cd "$(dirname "$0")/.."
export RELEASE_VERSION=${VERSION:-$(sed -n 's/^version: //p' charts/kubevirt/Chart.yaml)} RELEASE=$PWD/_out/release
again=$(mktemp -d)
trap 'rm -rf "$again"' EXIT
for folder in "$RELEASE" "$again/release"; do
  started=$SECONDS
  hack/release.sh "$RELEASE_VERSION" "$folder" -unreleased
  echo "made in $((SECONDS - started)) s"
done
if ! diff -rq "$RELEASE" "$again/release"; then
  echo "two runs of one commit differ: something depends on the clock, the path or the machine" >&2
  exit 1
fi
hack/gotest.sh release . ./tests/release
hack/gotest.sh install tests/kubevirt ./install
cat "$RELEASE/checksums.txt"
echo "$(wc -l <"$RELEASE/checksums.txt") files of $RELEASE_VERSION, twice the same: _out/release"
