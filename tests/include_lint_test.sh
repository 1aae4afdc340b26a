#!/usr/bin/env bash
# include_lint_test.sh SOURCE_DIR: include_lint.sh accepts and rejects what it should.
set -euo pipefail
lint=$1/tests/include_lint.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/longhaul/base"

# header NAME LINE...
header() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$tree/longhaul/base/$name.h"
}
accepts() {
  bash "$lint" "$tree" || { echo "FAILED: it rejects $1"; exit 1; }
}
rejects() {
  local said
  if said=$(bash "$lint" "$tree"); then echo "FAILED: it accepts $1"; exit 1; fi
  [[ $said == "longhaul/base/a.h:1: $2"* ]] || { echo "FAILED: $1: said '$said'"; exit 1; }
}

header a '#include <vector>' 'std::vector<int> numbers(); // not std::string'
accepts "a name whose header is included, and names in comments"
header a 'std::vector<int> numbers();'
rejects "a name without its header" "std::vector is used without #include <vector>"
header b '#include <vector>' 'std::vector<int> others();'
header a '#include "longhaul/base/b.h"' 'std::vector<int> numbers();'
accepts "a header that comes through one of ours"
header a 'std::unheard_of x;'
rejects "a name that the table does not know" "std::unheard_of has no header in the table"
header a 'int64_t x;'
rejects "an integer type without any header" "int64_t is used without #include <cstdint>"
header a 'const char* text = "std::string";'
accepts "a name in a literal"
header a_internal 'std::string x;'
accepts "the headers of tests"
