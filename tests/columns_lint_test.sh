#!/usr/bin/env bash
# columns_lint_test.sh SOURCE_DIR: shows that columns_lint.sh finds a long line in each kind of file that it reads.
set -euo pipefail
lint=$1/tests/columns_lint.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{.git,build/release,cmake,longhaul/base,scripts,tests/docs}

# put PATH COLUMNS: the file's second line has so many.
put() {
  printf '# One.\n%*s\n' "$2" '' | tr ' ' x >"$tree/$1"
}
for path in CMakeLists.txt CMakePresets.json longhaul/base/CMakeLists.txt cmake/Layer.cmake cmake/longhaul.pc.in \
  cmake/Config.cmake.in scripts/test tests/docs/pages.sh; do
  put "$path" 120
  bash "$lint" "$tree" || { echo "FAILED: it rejects 120 columns in $path"; exit 1; }
  put "$path" 121
  if said=$(bash "$lint" "$tree"); then echo "FAILED: it accepts 121 columns in $path"; exit 1; fi
  [[ $said == "$path:2: 121 columns; 120 are the limit" ]] || { echo "FAILED: $path: said '$said'"; exit 1; }
  put "$path" 1
done
put build/release/build.cmake 121
put .git/hook.sh 121
put longhaul/base/error.h 121
bash "$lint" "$tree" || { echo "FAILED: it rejects files that are not its own"; exit 1; }
echo "the lint accepts and rejects as it should"
