#!/usr/bin/env bash
# Runs the chart's helm-unittest suites and says how many; a run that executed no suite is a failure.
set -euo pipefail
chart=${1:-charts/kubevirt}
mkdir -p _out
output=$("${HELM_UNITTEST:-bin/helm-unittest}" --strict --output-type JUnit --output-file _out/junit-unit.xml "$chart" 2>&1) || {
  printf '%s\n' "$output"
  exit 1
}
[[ $output =~ Test\ Suites:\ ([0-9]+)\ passed,\ ([0-9]+)\ total ]] && suites=${BASH_REMATCH[1]} || suites=0
[[ $output =~ Tests:\ +([0-9]+)\ passed,\ ([0-9]+)\ total ]] && cases=${BASH_REMATCH[1]} || cases=0
if ((suites == 0 || cases == 0)); then
  printf '%s\nno suite was run: expected %s/tests/*_test.yaml\n' "$output" "$chart"
  exit 1
fi
echo "$suites suites, $cases cases"
