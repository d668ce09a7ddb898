#!/usr/bin/env bash
# Runs a command in the folder of every Go module of the repository. Usage: hack/each_module.sh COMMAND [ARGUMENT…]
set -euo pipefail
cd "$(dirname "$0")/.."
while IFS= read -r module; do
  echo "$module" >&2
  (cd "$(dirname "$module")" && "$@")
done < <(git ls-files 'go.mod' '*/go.mod' | grep -v '^hack/tools/')
