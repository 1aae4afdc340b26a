#!/usr/bin/env bash
# columns_lint.sh SOURCE_DIR: no line of the build's files and the scripts is longer than 120 columns, as .editorconfig
# says: *.cmake, CMakeLists.txt, CMakePresets.json, *.in, *.sh, and everything in scripts/; nor of messages and pages:
# *.proto, *.js, *.css, *.html. The C++ is clang-format's
# (format.sh), the pages are doc_pages' (docs/pages.sh).
set -euo pipefail
cd "$1"

find . \( -path ./.git -o -path './build*' \) -prune -o -type f \
  \( -name '*.cmake' -o -name CMakeLists.txt -o -name CMakePresets.json -o -name '*.in' -o -name '*.sh' \
  -o -name '*.proto' -o -name '*.js' -o -name '*.css' -o -name '*.html' \
  -o -path './scripts/*' \) -printf '%P\0' | LC_ALL=C sort -z |
  LC_ALL=C.UTF-8 xargs -0 awk '
    length > 120 {
      printf "%s:%d: %d columns; 120 are the limit\n", FILENAME, FNR, length
      failed = 1
    }
    END { exit failed }'
