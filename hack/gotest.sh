#!/usr/bin/env bash
# Runs the Go tests of a folder and leaves their results in _out/junit-NAME.xml. A test that is skipped is a failure, and
# so is a run without a test. GOTESTSUM_FORMAT=standard-verbose shows every test.
# Usage: hack/gotest.sh NAME FOLDER [ARGUMENT…]
set -euo pipefail
name=$1 folder=$2
shift 2
mkdir -p _out
report=$PWD/_out/junit-$name.xml gotestsum=$PWD/bin/gotestsum
rm -f "$report" # an earlier run's says nothing about this one
export GOTESTSUM_FORMAT=${GOTESTSUM_FORMAT:-pkgname-and-test-fails}
# No vet here: it reads every dependency again. golangci-lint has it.
(cd "$folder" && "$gotestsum" --format-hide-empty-pkg --junitfile "$report" -- -vet=off -count=1 "$@")
if [ ! -s "$report" ]; then
  echo "$report: no report was written" >&2
  exit 1
fi
if grep '<skipped' "$report"; then
  echo "$report: a test was skipped" >&2
  exit 1
fi
if ! grep -q '<testsuites[^>]* tests="[1-9]' "$report"; then
  echo "$name: no test was run" >&2
  exit 1
fi
