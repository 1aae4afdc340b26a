#!/usr/bin/env bash
# pages.sh ROOT PAGE...: every ```cpp block of the pages, paths below ROOT, is an example that is compiled and run, or says
# that it is a fragment; and what they link to in the repository is there.
set -euo pipefail
cd "$1"
shift
status=0

awk '
  FNR == 1 { previous = "" }
  /^```cpp/ && previous !~ /^<!-- (example: [a-z0-9_]+|fragment) -->$/ {
    print FILENAME ":" FNR ": a block of C++ without <!-- example: NAME --> or <!-- fragment --> above it"
    bad = 1
  }
  { previous = $0 }
  END { exit bad }' "$@" || status=1

for page in "$@"; do
  while IFS=: read -r line link; do
    target=${link#*](}
    target=${target%%[)#]*}
    [ -z "$target" ] && continue
    if [ ! -e "$(dirname "$page")/$target" ]; then
      echo "$page:$line: links to $target, which is not there"
      status=1
    fi
  done < <(grep -noE '\]\([^):]+\)' "$page" || true)
done
exit $status
