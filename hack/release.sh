#!/usr/bin/env bash
# Makes all that a release of the checked-out commit publishes, from a clone of it: the chart and its index, the plugin's
# archives with their SBOMs and krew manifest, the notes and the checksums. Nothing is published.
# Usage: hack/release.sh VERSION FOLDER [-unreleased], where -unreleased takes the notes of a version that has none yet
set -euo pipefail
version=$1 folder=$2
shift 2
if [ -z "$version" ]; then
  echo "VERSION is not set: name the version to release, VERSION=1.2.3" >&2
  exit 1
fi
downloads=https://github.com/cozy-kubevirt/cozy-kubevirt/releases/download/v$version
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/out"
git clone --quiet --no-checkout . "$work/clone"
git -C "$work/clone" checkout --quiet --detach "$(git rev-parse HEAD)"

bin/package -chart "$work/clone/charts/kubevirt" -version "$version" -out "$work/out" >/dev/null
rm "$work/out"/*.sha256 # one list has them all
bin/index -folder "$work/out" -url "$downloads" >/dev/null
cp "$work/clone/charts/kubevirt/values.schema.json" "$work/out"
go run ./hack/changes -changelog "$work/clone/CHANGELOG.md" -notes "$version" "$@" >"$work/out/notes.md"

# The SBOMs are made by a program on the path.
path=$PWD/bin:$PATH
if ! (cd "$work/clone" && PATH=$path GORELEASER_CURRENT_TAG=v$version goreleaser release --clean --skip=publish,announce,validate >"$work/log" 2>&1); then
  cat "$work/log" >&2
  exit 1
fi
cp "$work"/clone/dist/*.tar.gz "$work"/clone/dist/*.zip "$work"/clone/dist/*.cdx.json "$work/out"
bin/krew-manifest -template "$work/clone/.krew.yaml" -tag "v$version" -archives "$work/out" >"$work/out/drain-preview.yaml"

(cd "$work/out" && sha256sum -- *.tgz *.tar.gz *.zip *.json *.yaml >checksums.txt)
chmod 644 "$work/out"/*
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$work/out" "$folder"
