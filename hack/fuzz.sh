#!/usr/bin/env bash
# Fuzzes for about 30 s. The limit is a count: with a time, Go's fuzzer now and then reports its own deadline as a
# failure, without an input. Usage: hack/fuzz.sh PACKAGE FUZZTEST
set -euo pipefail
go test -run '^$' -fuzz "^$2\$" -fuzztime "${FUZZ_COUNT:-50000}x" "$1"
