#!/usr/bin/env bash
# header_examples_test.sh ROOT: header_examples.sh finds the examples in a small tree, and nothing else.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{cmake,longhaul/part,tests/docs}
echo 'longhaul/part.h base' >"$tree/cmake/public_headers.txt"
echo '#include "longhaul/part/one.h"' >"$tree/longhaul/part.h"
cat >"$tree/longhaul/part/one.h" <<'EOF'
// A class. Its states:
//
//   made --run--> over
//
//   One one(1);  // a comment
//   ... something else happens ...
//   one.run();
//
// A list:
//   - it has an item;
//     and more;
//   1. and another;
class One {
  // Also here:
  //   two();
};
EOF
echo '//   not_included();' >"$tree/longhaul/part/internal.h"
printf 'longhaul/part/one.h: %s\n' 'int before = 0;' 'int also = 0;' >"$tree/tests/docs/header_examples.context"

expected='#include "tests/docs/header_examples.h"
namespace longhaul::header_examples {
auto example_1() {
int before = 0;
int also = 0;
{
#line 5 "longhaul/part/one.h"
One one(1);  // a comment

one.run();
}
}
auto example_2() {
int before = 0;
int also = 0;
{
#line 15 "longhaul/part/one.h"
two();
}
}
}  // namespace longhaul::header_examples'
diff <(echo "$expected") <(bash "$1/tests/docs/header_examples.sh" "$tree")

echo 'longhaul/part/gone.h: int before = 0;' >>"$tree/tests/docs/header_examples.context"
if bash "$1/tests/docs/header_examples.sh" "$tree" >/dev/null 2>&1; then
  echo "a context for a header that is not there was not refused"
  exit 1
fi
