#!/usr/bin/env bash
# Shows that the generated files are up to date: regenerates them in a temporary copy and compares. Nothing in
# the tree is written; each fault comes with the command that mends it.
set -euo pipefail
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
faults=0
fault() { # what was found, the command that mends it
  printf '%s\nmend it with: %s\n\n' "$1" "$2"
  faults=$((faults + 1))
}

cp -R charts/kubevirt/. "$copy"
bin/helm-docs --log-level warning --chart-search-root "$copy"
diff -u charts/kubevirt/README.md "$copy/README.md" || fault "charts/kubevirt/README.md is not what helm-docs makes of values.yaml and README.md.gotmpl" "make docs"

go run ./hack/changes -check || fault "charts/kubevirt/Chart.yaml is not what CHANGELOG.md says" "make docs"

mkdir "$copy/manual"
go -C cmd/kubectl-drain_preview run ./internal/manual "$copy/manual"
diff -ru docs/manual "$copy/manual" || fault "docs/manual is not what kubectl drain-preview says of itself" "make docs"

modules=0
for mod in $(git ls-files --cached --others --exclude-standard 'go.mod' '*/go.mod'); do
  (cd "$(dirname "$mod")" && go mod tidy -diff >/dev/null) || fault "$mod is not tidy" "cd $(dirname "$mod") && go mod tidy"
  modules=$((modules + 1))
done

unformatted=$(git ls-files -z --cached --others --exclude-standard '*.go' | xargs -0 gofmt -l)
[ -z "$unformatted" ] || fault "not formatted: $unformatted" "gofmt -w $unformatted"

((faults == 0)) || exit 1
echo "chart README, manual, changes, $modules Go modules, formatting"
