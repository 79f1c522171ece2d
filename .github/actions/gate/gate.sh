#!/usr/bin/env bash
# Calls detmap with the inputs of the action, which are in the environment, and adds the verdicts to the job's summary.
set -euo pipefail

if [ -z "$FAIL_UNDER$MAX_DROP" ]; then
    echo "The action needs a gate: fail-under or max-drop." >&2
    exit 2
fi
words=("$COMMAND")
# add FLAG TEXT: a word per line of the text, each after the flag, if there is one.
add() {
    local line
    while IFS= read -r line || [ -n "$line" ]; do
        if [ -n "$line" ]; then words+=(${1:+"$1"} "$line"); fi
    done <<<"$2"
}
add "" "$FILES"
add --fail-under "$FAIL_UNDER"
add --max-drop "$MAX_DROP"
add --against "$AGAINST"
add "" "$OPTIONS"

summary="$(mktemp)"
trap 'rm -f "$summary"' EXIT
code=0
"${PYTHON:-python}" -m detmap "${words[@]}" --junit detmap-gates.xml --gate-summary "$summary" || code=$?
cat "$summary" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
exit "$code"
