#!/usr/bin/env bash
# diffs.sh ROOT: the pages that show which lines put a libtorch program under supervision have the same ```diff block,
# and its lines, but for those with a minus, are in examples/plain_libtorch.cc, in this order. It has at most six lines
# with a plus: it shows how little is needed.
#
# The example takes the directory and an interval from its options: that is how the two differ.
set -euo pipefail
cd "$1"
pages=(README.md docs/coming_from_pytorch.md docs/guide/trainer.md)
example=examples/plain_libtorch.cc
status=0

block_of() {
  awk '/^```diff$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$1"
}

# The example in one line, as the block writes it.
text_of_example() {
  sed -E 's, *//.*,,; s/"(longhaul\/[a-z]+\.h)"/<\1>/; s/\.data_ptr<[a-z0-9_]+>\(\)//g; s/options\.steps/steps/' \
    "$example" | tr -s ' \n' ' ' |
    sed -E 's/\(options\.logdir, net, optimizer, \{[^{]*\{[^}]*\}\}\)/("runs\/net", net, optimizer)/'
}

check_lines() {
  local rest line
  rest=$(text_of_example)
  while IFS= read -r line; do
    line=$(sed -E 's/^[+ ] *//; s, *//.*,,' <<<"$line")
    if [[ $rest != *" $line "* ]]; then
      echo "${pages[0]}: \`$line\` is not in $example, or not in this order"
      status=1
      return
    fi
    rest=" ${rest#*" $line "}"
  done < <(block_of "${pages[0]}" | grep -vE '^-|^ \.\.\.$')
}

first=$(block_of "${pages[0]}")
[[ $first == *+* ]] || { echo "${pages[0]}: has no diff"; exit 1; }
for page in "${pages[@]:1}"; do
  diff <(echo "$first") <(block_of "$page") || { echo "$page: its diff is not that of ${pages[0]}"; status=1; }
done
check_lines
added=$(grep -c '^+' <<<"$first")
[ "$added" -le 6 ] || { echo "${pages[0]}: its diff adds $added lines; 6 are the limit"; status=1; }
exit $status
