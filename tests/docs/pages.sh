#!/usr/bin/env bash
# pages.sh ROOT: every ```cpp block of the pages is an example that is compiled and run, or a fragment that says why
# it is not; the main() of an example catches exceptions; every ```bash block is one that bash can read; the files
# that they link to or name are there, and the headings and symbols that a link names in them; where they run a test
# program with a filter, each pattern of it is that of a test; docs/guide.md links to each page of the guide; README's
# table has each folder of longhaul/, and docs/architecture.md each folder of these; the tour of the code has 20
# stops; each glossary has 10 to 40 terms, docs/glossary.md 20 at least, sorted, each once; every line ends at column
# 120, also in tables and code.
set -euo pipefail
cd "$1"
pages=(README.md CHANGELOG.md CONTRIBUTING.md docs/*.md docs/*/*.md)
status=0

awk '
  FNR == 1 { previous = "" }
  /^```cpp/ && previous !~ /^<!-- (example: [a-z0-9_]+|fragment: [^ ].*) -->$/ {
    print FILENAME ":" FNR ": a block of C++ without <!-- example: NAME --> or <!-- fragment: REASON --> above it"
    bad = 1
  }
  /^int main\(.*\{$/ && !/ try \{$/ {
    print FILENAME ":" FNR ": a main() that catches nothing: end it with } catch (const std::exception& error) { ... }"
    bad = 1
  }
  { previous = $0 }
  END { exit bad }' "${pages[@]}" || status=1

awk '
  length > 120 {
    print FILENAME ":" FNR ": " length " columns; 120 are the limit: make a list of a table that needs more"
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

# Lines "NUMBER:PATH": `train/hooks/x.h` is a file of longhaul/, unless it begins with another folder of the root.
below_longhaul() {
  sed -E '/:(longhaul|docs|scripts|tests|tools|examples|benchmarks|cmake)\//! s,:,:longhaul/,'
}

# anchors_of PAGE: what a link writes after the # for each of its headings.
anchors_of() {
  awk '/^ *```/ { fenced = !fenced } !fenced && /^#+ /' "$1" | sed -E 's/^#+ //; s/[^A-Za-z0-9_ -]//g; s/ /-/g' |
    tr '[:upper:]' '[:lower:]'
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

# declares SYMBOL FILE: the file declares or defines it. `Class::name` is a member in that class's body, or defined as
# Class::name; `name` a class, one of whose members is defined here, or a function, alias or enum.
declares() {
  awk -v symbol="$1" '
    function is_member(line) {
      return line ~ ("^  ([A-Za-z~].*[^A-Za-z0-9_.>:])?" name " *[(=;{]") && line !~ /^  (return|throw) /
    }
    # Of the class whose definition begins on this line.
    function class_of(line) {
      if (line !~ /^(template <.*> *)?(class|struct|enum) / || line ~ /; *$/) return ""
      sub(/ *\{.*/, "", line)
      sub(/ : .*/, "", line)
      sub(/ final$/, "", line)
      sub(/.*[ :]/, "", line)
      return line
    }
    BEGIN {
      n = split(symbol, parts, "::")
      name = parts[n]
      owner = n > 1 ? parts[n - 1] : ""
    }
    {
      line = $0
      sub(/\/\/.*/, "", line)
      gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      class = class_of(line)
    }
    class != "" { inside = class }
    line ~ /^\}/ { inside = "" }
    owner != "" && line ~ ("^([A-Za-z].*[ *&])?" owner "(<[^>]*>)?::" name " *\\(") { found = 1 }
    owner != "" && inside == owner && is_member(line) { found = 1 }
    owner == "" && class == name { found = 1 }
    owner == "" && line ~ ("^[A-Za-z].*[ *&]" name " *\\(") { found = 1 }
    owner == "" && line ~ ("^([A-Za-z].*[ *&])?" name "(<[^>]*>)?::[~A-Za-z]+\\(") { found = 1 }
    owner == "" && line ~ ("^using " name " =") { found = 1 }
    END { exit !found }' "$2"
}

# [`Class::name`](file): the file declares or defines it. [`name.cc`](file) names the file itself.
check_symbols() {
  local line symbol path
  while IFS='|' read -r line symbol path; do
    path=$(dirname "$1")/$path
    case $symbol in *.*) continue ;; esac
    if [ -e "$path" ] && ! declares "$symbol" "$path"; then
      echo "$1:$line: $path does not declare or define $symbol"
      status=1
    fi
  done < <(grep -noE '\[`[A-Za-z_:.]+`\]\([^) ]+\.(h|cc)\)' "$1" | sed -E 's/:\[`/|/; s/`\]\(/|/; s/\)$//')
}

# sources_of PROGRAM: of train_test those of the layer and its rooms, of others those that tests/CMakeLists.txt has.
sources_of() {
  local layer=longhaul/${1%_test}
  if [ -d "$layer" ]; then
    find "$layer" -name '*_test.cc'
  else
    sed -nE "/^longhaul_test(_program)?\\($1\$/,/^  DEPENDS/p" tests/CMakeLists.txt | grep -oE '[a-z0-9_/]+_test\.cc' |
      sed 's,^,tests/,'
  fi
}

# names_of SOURCE...: of the tests there, as a program lists them; of parameters only the first.
names_of() {
  [ $# -gt 0 ] || return 0
  awk '
    function remember(head,    parts) {
      kind = head
      sub(/\(.*/, "", kind)
      sub(/^[A-Z_]*\( */, "", head)
      sub(/\).*/, "", head)
      split(head, parts, / *, */)
      if (kind ~ /^INSTANTIATE/) { prefixes[parts[2]] = prefixes[parts[2]] " " parts[1] }
      else if (kind == "TEST_P" || kind == "TYPED_TEST_P") { suite[++n] = parts[1]; test[n] = parts[2] }
      else print parts[1] (kind == "TYPED_TEST" ? "/0" : "") "." parts[2]
    }
    FNR == 1 { open = 0 }
    /^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P|INSTANTIATE_(TYPED_)?TEST_SUITE_P)\(/ { open = 1; head = "" }
    open { head = head " " $0; sub(/^ +/, "", head) }
    open && head ~ /^[A-Z_]+\([^,]*,[^,)]+[,)]/ { remember(head); open = 0 }
    END {
      for (i = 1; i <= n; i++) {
        count = split(prefixes[suite[i]], words, " ")
        if (count == 0) words[count = 1] = "Any"  # by a macro of the tests
        for (j = 1; j <= count; j++) print words[j] "/" suite[i] "." test[i] "/0"
        for (j = 1; j <= count; j++) print words[j] "/" suite[i] "/0." test[i]
      }
    }' "$@"
}

# `PROGRAM --gtest_filter=...`: each of its patterns is that of a test of the program.
check_filters() {
  local line program filter pattern patterns sources name found
  while IFS='|' read -r line program filter; do
    mapfile -t sources < <(sources_of "$program")
    IFS=: read -ra patterns <<<"${filter%%-*}"
    for pattern in "${patterns[@]}"; do
      found=
      while read -r name; do
        # shellcheck disable=SC2053
        if [[ $name == $pattern ]]; then found=1; fi
      done < <(names_of "${sources[@]}")
      if [ ! "$found" ]; then
        echo "$1:$line: $program has no test $pattern"
        status=1
      fi
    done
  done < <(grep -noE "[a-z_]+_test --gtest_filter='[^']+'" "$1" |
    sed -E "s/^([0-9]+):/\1|/; s/ --gtest_filter='/|/; s/'$//")
}

# Recipes that nothing here can run are at least scripts.
check_scripts() {
  local line said script
  while read -r line; do
    script=$(awk -v first="$line" 'NR > first && /^ *```/ { exit } NR > first' "$1")
    said=$(bash -n <<<"$script" 2>&1) && continue
    echo "$1:$line: bash cannot read this block: ${said%%$'\n'*}"
    status=1
  done < <(awk '/^ *```bash/ { print FNR }' "$1")
}

check_guide() {
  local page
  for page in docs/guide/*.md; do
    if [ -e "$page" ] && ! grep -qsE -- "\]\(${page#docs/}[)#]" docs/guide.md; then
      echo "docs/guide.md: does not link to $page"
      status=1
    fi
  done
}

# Lines "longhaul/NAME", from the first column of README's table; `longhaul/a/`, `b/` is a and b.
folders_of_readme() {
  sed -n '/^## Where things are/,/^## Where to/p' README.md | awk -F '|' '
    $2 ~ /^ `longhaul\/[a-z]/ {
      n = split($2, parts, "`")
      for (i = 2; i <= n; i += 2) {
        sub(/^longhaul\//, "", parts[i])
        sub(/\/$/, "", parts[i])
        print "longhaul/" parts[i]
      }
    }' | LC_ALL=C sort
}

check_folders() {
  diff <(folders_of_readme) <(find longhaul -mindepth 1 -maxdepth 1 -type d | LC_ALL=C sort) && return
  echo "README.md: the folders of the library in the table \"Where things are\" (<) are not those there are (>)"
  status=1
}

# Lines "longhaul/LAYER/NAME", from the items - `longhaul/LAYER/NAME`: ... and - `longhaul/LAYER`: `NAME/` (...); ...
folders_of_architecture() {
  awk '
    !/^  / { layer = "" }
    match($0, /^- `longhaul\/[a-z_\/]+`: /) {
      layer = substr($0, 4, RLENGTH - 6)
      if (layer ~ /\/.*\//) print layer
    }
    layer != "" {
      n = split($0 " ", part, /`/)
      for (i = 3; i <= n; i++) if (part[i] ~ /^ (\(|$)/ && sub(/\/$/, "", part[i - 1])) print layer "/" part[i - 1]
    }' docs/architecture.md | LC_ALL=C sort
}

check_architecture() {
  diff <(folders_of_architecture) <(find longhaul -mindepth 2 -maxdepth 2 -type d | LC_ALL=C sort) && return
  echo "docs/architecture.md: its folders of the layers (<) are not those there are (>)"
  status=1
}

# The stops of the tour are numbered from 1 to 20, and each names its file.
check_tour() {
  local tour=docs/code_tour.md stops
  stops=$(sed -nE 's/^([0-9]+)\. \[`[^`]+`\]\(.*/\1/p' "$tour") || true
  [ "$stops" != "$(seq 20)" ] || return 0
  echo "$tour: its stops are" $stops "instead of 1 to 20"
  status=1
}

# A glossary that is too long is read by nobody. "checkpoint, intact" follows "checkpoint".
check_glossaries() {
  local page terms count least
  for page in docs/glossary*.md; do
    terms=$(sed -nE 's/^- \*\*([^*]+)\*\*: .*/\1/p' "$page" | tr '[:upper:]' '[:lower:]' | sed 's/,/\t/')
    count=$(grep -c . <<<"$terms" || true)
    least=10
    [ "$page" != docs/glossary.md ] || least=20
    if [ "$count" -lt "$least" ] || [ "$count" -gt 40 ]; then
      echo "$page: its terms are $count instead of $least to 40"
      status=1
    fi
    LC_ALL=C sort -c -u <<<"$terms" 2>/dev/null || {
      echo "$page: its terms are not sorted, or one comes twice"
      status=1
    }
  done
}

for page in "${pages[@]}"; do
  check_anchors "$page"
  check_symbols "$page"
  check_filters "$page"
  check_scripts "$page"
  check_paths "$page" "$(dirname "$page")" < <(grep -noE '\]\([^): ]+\)' "$page" | sed -E 's/\]\((.*)\)/\1/')
  check_paths "$page" . < <(grep -noE '`(longhaul|docs|scripts|tests|examples|benchmarks|cmake)/[A-Za-z0-9_./]*`' \
    "$page" | tr -d '`')
  check_paths "$page" . < <(grep -noE '`[a-z0-9_]+/[a-z0-9_/]+\.(h|cc|proto)`' "$page" | tr -d '`' | below_longhaul)
done
check_guide
check_folders
check_architecture
check_tour
check_glossaries
exit $status
