#!/usr/bin/env bash
# columns_lint_test.sh SOURCE_DIR: shows that columns_lint.sh finds a long line in each kind of file that it reads.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree"/{.git,build/release,cmake,longhaul/base,scripts,tests/docs}

# put PATH COLUMNS: the file's second line has so many.
put() {
  printf '# One.\n%*s\n' "$2" '' | tr ' ' x >"$tree/$1"
}
for path in CMakeLists.txt CMakePresets.json longhaul/base/CMakeLists.txt cmake/Layer.cmake cmake/longhaul.pc.in \
  cmake/Config.cmake.in scripts/test tests/docs/pages.sh; do
  put "$path" 120
  passes "120 columns in $path"
  put "$path" 121
  complains "121 columns in $path"
  [[ $said == "$path:2: 121 columns; 120 are the limit" ]] || failed "$path: said '$said'"
  put "$path" 1
done
put build/release/build.cmake 121
put .git/hook.sh 121
put longhaul/base/error.h 121
passes "files that are not its own"
echo "the lint accepts and rejects as it should"
