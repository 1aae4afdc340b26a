#!/usr/bin/env bash
# pages.sh ROOT: every ```cpp block of the pages is an example that is compiled and run, or says that it is a fragment;
# the files that they link to or name are there; and lines end at column 120.
set -euo pipefail
cd "$1"
pages=(README.md CHANGELOG.md docs/*.md docs/formats/*.md)
status=0

awk '
  FNR == 1 { previous = "" }
  /^```cpp/ && previous !~ /^<!-- (example: [a-z0-9_]+|fragment) -->$/ {
    print FILENAME ":" FNR ": a block of C++ without <!-- example: NAME --> or <!-- fragment --> above it"
    bad = 1
  }
  { previous = $0 }
  END { exit bad }' "${pages[@]}" || status=1

awk '
  FNR == 1 { fenced = 0 }
  /^ *```/ { fenced = !fenced }
  length > 120 && !fenced && !/^\|/ && !/^    / {
    print FILENAME ":" FNR ": " length " columns; 120 are the limit, but for tables and code"
    bad = 1
  }
  END { exit bad }' "${pages[@]}" || status=1

# check_paths PAGE FOLDER: lines "NUMBER:PATH" on stdin, paths below the folder.
check_paths() {
  local line path
  while IFS=: read -r line path; do
    path=${path%%#*}
    if [ ! -e "$2/$path" ]; then
      echo "$1:$line: $path is not there"
      status=1
    fi
  done
}

for page in "${pages[@]}"; do
  check_paths "$page" "$(dirname "$page")" < <(grep -noE '\]\([^): ]+\)' "$page" | sed -E 's/\]\((.*)\)/\1/')
  check_paths "$page" . < <(grep -noE '`(longhaul|docs|scripts|tests|examples|benchmarks|cmake)/[A-Za-z0-9_./]*`' "$page" | tr -d '`')
done
exit $status
