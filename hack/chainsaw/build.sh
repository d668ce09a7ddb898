#!/usr/bin/env bash
# Builds the pinned chainsaw, with the method that it lacks to compile with Go 1.26 added to a copy of its source: Go lays
# no overlay over the module cache. A release that has the method (kyverno/chainsaw#2646) fails here as a duplicate;
# then this script and _patch/ can go. Usage: hack/chainsaw/build.sh BINARY
set -euo pipefail
binary=$PWD/$1
cd "$(dirname "$0")"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R "$(go list -f '{{.Module.Dir}}' github.com/kyverno/chainsaw)" "$copy/chainsaw"
chmod -R u+w "$copy"
cp _patch/module_path.go "$copy/chainsaw/pkg/runner/internal"
cp go.mod go.sum "$copy"
go mod edit -replace "github.com/kyverno/chainsaw=$copy/chainsaw" "$copy/go.mod"
go build -modfile "$copy/go.mod" -ldflags "-s -w" -o "$binary" github.com/kyverno/chainsaw
