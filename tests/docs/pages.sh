#!/usr/bin/env bash
# pages.sh ROOT: every ```cpp block of the pages is an example that is compiled and run, or says that it is a fragment, and
# the main() of an example catches exceptions; the files that they link to or name are there, and the headings and symbols
# that a link names in them; lines end at column 120, and a cell of a table has 230 columns at most: a paragraph stands
# in the text. The table of facts, which facts.sh writes, is excepted.
set -euo pipefail
cd "$1"
pages=(README.md CHANGELOG.md CONTRIBUTING.md docs/*.md docs/*/*.md)
status=0

awk '
  FNR == 1 { previous = "" }
  /^```cpp/ && previous !~ /^<!-- (example: [a-z0-9_]+|fragment) -->$/ {
    print FILENAME ":" FNR ": a block of C++ without <!-- example: NAME --> or <!-- fragment --> above it"
    bad = 1
  }
  /^int main\(.*\{$/ && !/ try \{$/ {
    print FILENAME ":" FNR ": a main() that catches nothing: end it with } catch (const std::exception& error) { ... }"
    bad = 1
  }
  { previous = $0 }
  END { exit bad }' "${pages[@]}" || status=1

awk '
  /^\|/ && !/^\| [A-Z]+-[0-9]+ \|/ {
    n = split($0, cells, / \| /)
    for (i = 1; i <= n; i++) {
      if (length(cells[i]) <= 230) continue
      print FILENAME ":" FNR ": a cell of " length(cells[i]) " columns; 230 are the limit: put the rest into the text"
      bad = 1
    }
  }
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

# anchors_of PAGE: what a link writes after the # for each of its headings.
anchors_of() {
  awk '/^ *```/ { fenced = !fenced } !fenced && /^#+ /' "$1" | sed -E 's/^#+ //; s/[^A-Za-z0-9_ -]//g; s/ /-/g' | tr '[:upper:]' '[:lower:]'
}

# [text](page.md#heading): the page has that heading.
check_anchors() {
  local line target page
  while IFS=: read -r line target; do
    page=${target%%#*}
    page=${page:+$(dirname "$1")/$page}
    page=${page:-$1}
    if [ -e "$page" ] && ! anchors_of "$page" | grep -qxF -- "${target#*#}"; then
      echo "$1:$line: $page has no heading for #${target#*#}"
      status=1
    fi
  done < <(grep -noE '\]\([^): ]*#[^) ]+\)' "$1" | sed -E 's/\]\((.*)\)/\1/')
}

# [`Class::name`](file): the file has a word `name`. [`name.cc`](file) names the file itself.
check_symbols() {
  local line symbol path
  while IFS='|' read -r line symbol path; do
    path=$(dirname "$1")/$path
    case $symbol in *.*) continue ;; esac
    if [ -e "$path" ] && ! grep -qw -- "${symbol##*::}" "$path"; then
      echo "$1:$line: $path has no $symbol"
      status=1
    fi
  done < <(grep -noE '\[`[A-Za-z_:.]+`\]\([^) ]+\.(h|cc)\)' "$1" | sed -E 's/:\[`/|/; s/`\]\(/|/; s/\)$//')
}

for page in "${pages[@]}"; do
  check_anchors "$page"
  check_symbols "$page"
  check_paths "$page" "$(dirname "$page")" < <(grep -noE '\]\([^): ]+\)' "$page" | sed -E 's/\]\((.*)\)/\1/')
  check_paths "$page" . < <(grep -noE '`(longhaul|docs|scripts|tests|examples|benchmarks|cmake)/[A-Za-z0-9_./]*`' "$page" | tr -d '`')
done
exit $status
