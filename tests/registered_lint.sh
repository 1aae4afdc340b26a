#!/usr/bin/env bash
# registered_lint.sh SOURCE_DIR: what stands among the tests runs with them.
#
#   1. Each script under tests/ is named in the CMakeLists.txt of its folder, by a script in scripts/ that runs it, or
#      by a test that sources it.
#      The lints and their tests, tests/*_lint.sh and tests/*_lint_test.sh, are added as the folder's listing has them.
#   2. Each lint has a test, tests/NAME_lint_test.sh.
#   3. Each *_test.cc is named in the CMakeLists.txt of its folder, or of one above.
set -euo pipefail
cd "$1"
status=0

complain() {
  echo "$*"
  status=1
}

# is_named FOLDER NAME: in the CMakeLists.txt of the folder, or in one between it and the root.
is_named() {
  local folder=$1 name=${2//./\\.}
  while :; do
    ! grep -qsE "^[^#]*(^|[^A-Za-z0-9_])$name([^A-Za-z0-9_]|$)" "$folder/CMakeLists.txt" || return 0
    [ "$folder" != . ] || return 1
    folder=$(dirname "$folder")
  done
}

# runs_lints: the lints are added by the listing of their folder.
runs_lints() {
  grep -qsE '^file\(GLOB lints [^)]*\*_lint\.sh \*_lint_test\.sh\)' tests/CMakeLists.txt &&
    grep -qsE '^ *add_test\(NAME \$\{name\} COMMAND bash \$\{lint\} ' tests/CMakeLists.txt
}

# is_sourced PATH: a test begins with `. "$1/PATH"`.
is_sourced() {
  grep -qsxF -- ". \"\$1/$1\"" tests/*_test.sh
}

check_scripts() {
  local path
  while read -r path; do
    is_named "$(dirname "$path")" "$(basename "$path")" || grep -qrsF -- "$path" scripts || is_sourced "$path" ||
      complain "$path: no CMakeLists.txt adds it as a test, and no script runs it"
  done < <(find tests -name '*.sh' ! -path 'tests/*_lint.sh' ! -path 'tests/*_lint_test.sh' | LC_ALL=C sort)
}

check_lints() {
  local path
  runs_lints || complain "tests/CMakeLists.txt: does not add all of *_lint.sh and *_lint_test.sh"
  for path in tests/*_lint.sh; do
    [ -e "${path%.sh}_test.sh" ] || complain "$path: has no test, ${path%.sh}_test.sh"
  done
  while read -r path; do
    complain "$path: a lint stands in tests/, which adds all of them"
  done < <(find . -mindepth 3 -name '*_lint*.sh' ! -path './build/*' -printf '%P\n')
}

check_sources() {
  local path
  while read -r path; do
    is_named "$(dirname "$path")" "$(basename "$path")" || complain "$path: no CMakeLists.txt compiles it"
  done < <(find longhaul examples benchmarks tests -name '*_test.cc' | LC_ALL=C sort)
}

check_scripts
check_lints
check_sources
exit $status
