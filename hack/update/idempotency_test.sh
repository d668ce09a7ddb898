#!/usr/bin/env bash
# Drives `make update CR_FILE=<copy>` as a user does: from any loss of blocks it must reach the template's bytes,
# and a failed run must leave the copy as it was. Needs bash and make (and cmp, cp, mktemp, rm), and never skips.
set -euo pipefail
unset MAKEFLAGS MFLAGS # this may run under make test, whose flags are not the user's

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
template=$repository/charts/kubevirt/templates/kubevirt-cr.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy="$work/a copy.yaml"
runs=0

fail() {
  printf 'FAIL: %s\n' "$1" >&2
  if [[ -f $work/log ]]; then printf '%s\n' "$(<"$work/log")" >&2; fi
  exit 1
}

# update runs make on the copy; its output goes to the log.
update() {
  runs=$((runs + 1))
  make --no-print-directory -C "$repository" update CR_FILE="$copy" >"$work/log" 2>&1
}

# must_restore MESSAGE: the copy becomes the template, and a second run changes nothing.
must_restore() {
  update || fail "$1: make update fails"
  cmp -s "$copy" "$template" || fail "$1: the copy is not the template"
}

# must_refuse MESSAGE: make update fails, and the copy stays as it was.
must_refuse() {
  cp "$copy" "$work/before"
  if update; then fail "$1: make update succeeds"; fi
  cmp -s "$copy" "$work/before" || fail "$1: a failed run changed the copy"
}

# must_not_break MESSAGE: the copy becomes the template, or make update fails and the copy stays as it was.
must_not_break() {
  cp "$copy" "$work/before"
  if update; then
    cmp -s "$copy" "$template" || fail "$1: the copy is not the template"
  else
    cmp -s "$copy" "$work/before" || fail "$1: a failed run changed the copy"
  fi
}

lines=()
while IFS= read -r line; do lines+=("$line"); done <"$template"

# without FIRST LAST [FIRST LAST]...: the copy becomes the template without these ranges of lines.
without() {
  local i n kept
  for ((i = 1; i <= ${#lines[@]}; i++)); do
    kept=yes
    for ((n = 1; n < $#; n += 2)); do
      if ((i >= ${!n})); then
        local last=$((n + 1))
        if ((i <= ${!last})); then kept=no; fi
      fi
    done
    if [[ $kept == yes ]]; then printf '%s\n' "${lines[i - 1]}"; fi
  done >"$copy"
}

# Untouched: nothing changes. The report says which lines the blocks are in.
cp "$template" "$copy"
must_restore "the template untouched"
names=() firsts=() lasts=()
pattern='block ([^ ]+): unchanged, lines? ([0-9]+)(-([0-9]+))?$'
while IFS= read -r line; do
  if [[ $line =~ $pattern ]]; then
    names+=("${BASH_REMATCH[1]}")
    firsts+=("${BASH_REMATCH[2]}")
    lasts+=("${BASH_REMATCH[4]:-${BASH_REMATCH[2]}}")
  fi
done <"$work/log"

# Every directive of the template must be in a reported block, or the losses below would not be all there are.
for ((i = 1; i <= ${#lines[@]}; i++)); do
  if [[ ${lines[i - 1]} != *'{{'* || ${lines[i - 1]} == *'{{- /*'* ]]; then continue; fi
  covered=no
  for ((b = 0; b < ${#names[@]}; b++)); do
    if ((i >= firsts[b] && i <= lasts[b])); then covered=yes; fi
  done
  [[ $covered == yes ]] || fail "line $i of the template, ${lines[i - 1]}, is in no block that make update reports"
done

all=()
for ((b = 0; b < ${#names[@]}; b++)); do
  all+=("${firsts[b]}" "${lasts[b]}")
  without "${firsts[b]}" "${lasts[b]}"
  must_restore "${names[b]} lost"
  must_restore "${names[b]} lost, the second run"
  if ((lasts[b] > firsts[b])); then
    without "${firsts[b]}" "${firsts[b]}"
    if [[ ${lines[firsts[b] - 1]} == *'{{'* ]]; then must_refuse "the first line of ${names[b]} lost"; fi
    without "${lasts[b]}" "${lasts[b]}"
    must_not_break "the last line of ${names[b]} lost" # one {{- end }} looks like the next
  fi
  for ((c = b + 1; c < ${#names[@]}; c++)); do
    without "${firsts[b]}" "${lasts[b]}" "${firsts[c]}" "${lasts[c]}"
    must_restore "${names[b]} and ${names[c]} lost"
  done
done
without "${all[@]}"
must_restore "all blocks lost"
must_restore "all blocks lost, the second run"

printf 'kind: Deployment\n' >"$copy"
must_refuse "not a KubeVirt CR"
: >"$copy"
must_refuse "an empty file"

printf 'update_idempotency: %d blocks, %d runs of make update\n' "${#names[@]}" "$runs"
