#!/usr/bin/env bash
# include_lint_test.sh SOURCE_DIR: include_lint.sh accepts and rejects what it should.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree/longhaul/base"

# header NAME LINE...; source_file NAME LINE...
header() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$tree/longhaul/base/$name.h"
}
source_file() {
  local name=$1
  shift
  printf '%s\n' "$@" >"$tree/longhaul/base/$name.cc"
}
rejects() {
  complains "$1"
  [[ $said == "longhaul/base/a."*":1: $2"* && $said != *$'\n'* ]] || failed "$1: said '$said'"
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
header a '#include <ATen/ATen.h>'
rejects "all of libtorch" "<ATen/ATen.h> has all of libtorch"
header a '#include <ATen/core/Tensor.h>' '#include <ATen/ops/empty.h>'
accepts "a part of libtorch"
header a 'int64_t x;'
rejects "an integer type without any header" "int64_t is used without #include <cstdint>"
header a 'const char* text = "std::string";'
accepts "a name in a literal"
header a_internal 'std::string x;'
accepts "the headers of tests"
header a ''
source_file c '#include <vector>'
source_file a '// A comment.' '#include "longhaul/base/a.h"' '' '#include <vector>'
accepts "a source that begins with its header, and one that has none"
source_file a '#include "longhaul/base/a.h"' '#include <vector>'
rejects "a source whose header is not alone" '#include "longhaul/base/a.h" is not the first directive'
source_file a '#include <vector>' '#include "longhaul/base/a.h"' '' '#include <map>'
rejects "a source that begins with another header" '#include "longhaul/base/a.h" is not the first directive'
source_file a '#define A' '#include "longhaul/base/a.h"'
rejects "a source that begins with a macro" '#include "longhaul/base/a.h" is not the first directive'
source_file a 'int a;'
rejects "a source without its header" '#include "longhaul/base/a.h" is not the first directive'
source_file a '#include <vector>' && mv "$tree/longhaul/base/a.cc" "$tree/longhaul/base/a_test.cc"
header a_test ''
accepts "a test"
mkdir "$tree/longhaul/binding"
echo '#if TORCH_VERSION_MAJOR < 2' >"$tree/longhaul/binding/torch_versions_fixture.h"
accepts "the header that may ask for the version of libtorch"
printf '%s\n' '' '  #  if TORCH_VERSION_MAJOR < 2' >"$tree/longhaul/base/a_test.cc"
complains "another file that asks for it"
[[ $said == "longhaul/base/a_test.cc:2: asks for the version of libtorch; "* ]] || failed "it says '$said'"
