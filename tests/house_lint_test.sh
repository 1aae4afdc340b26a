#!/usr/bin/env bash
# house_lint_test.sh SOURCE_DIR: shows that house_lint.sh accepts a good tree, and names what is too long or not used.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree"/{cmake,docs/guide} "$tree"/longhaul/{base,io,train/saving,runtime}
cat >"$tree/cmake/LonghaulLayer.cmake" <<'TABLE'
set(LONGHAUL_ARROWS_base "")
set(LONGHAUL_ARROWS_io base)
set(LONGHAUL_ARROWS_train/saving
    base
    io)
set(LONGHAUL_ARROWS_runtime train)
TABLE
touch "$tree/cmake/public_headers.txt"

# put PATH LINES [INCLUDE...]: a file of so many lines, the first of which include these.
put() {
  local path=$tree/$1 lines=$2
  shift 2
  { for header; do echo "#include \"$header\""; done; head -c $((lines - $#)) /dev/zero | tr '\0' '\n'; } >"$path"
}

put docs/guide/page.md 299
put longhaul/base/error.h 3000
put longhaul/base/error_test.cc 2000
put longhaul/io/file.cc 2 longhaul/base/error.h
put longhaul/train/saving/saver.h 1000 longhaul/base/error.h
put longhaul/train/saving/saver.cc 2000 longhaul/io/file.h
put longhaul/train/saving/saver_test.cc 2000
put longhaul/train/saving/saver_fixture.h 2000
put longhaul/runtime/plan.cc 2 longhaul/train/saving/saver.h
accepts "a layer and a room of 3000 lines without their tests, a page of 299, and arrows that are used"

put longhaul/base/log.h 1
rejects "a layer with many files in no folder" "longhaul/base: 3001 lines in no folder of it, without its tests"
mkdir "$tree/longhaul/base/logging"
mv "$tree/longhaul/base/log.h" "$tree/longhaul/base/logging"
accepts "a layer of more lines, some of them in a folder"

put longhaul/train/saving/saver.cc 2001 longhaul/io/file.h
rejects "a long room" "longhaul/train/saving: 3001 lines without its tests"
put longhaul/train/saving/saver.cc 2000 longhaul/io/file.h
mkdir "$tree/longhaul/host" "$tree/longhaul/host/queues"
put longhaul/host/queues/big.cc 3001
rejects "a long folder of a layer without rooms" "longhaul/host/queues: 3001 lines without its tests"
mkdir "$tree/longhaul/host/queues/order"
put longhaul/host/queues/big.cc 2000
put longhaul/host/queues/order/order.cc 1001
rejects "a long folder, with the folders in it" "longhaul/host/queues: 3001 lines without its tests"
put longhaul/host/queues/order/order.cc 1000
accepts "a folder of 3000 lines"
put docs/guide/page.md 300
rejects "a long page" "docs/guide/page.md: 300 lines"
put docs/guide/page.md 299

unused="cmake/LonghaulLayer.cmake: no file of"
put longhaul/runtime/plan.cc 1
rejects "an unused arrow to the rooms of a layer" "$unused longhaul/runtime uses the arrow to train;"
put longhaul/runtime/plan.cc 2 longhaul/train/saving/saver.h
put longhaul/train/saving/saver.cc 1
rejects "an unused arrow of a room" "$unused longhaul/train/saving uses the arrow to io;"
put longhaul/train/saving/saver_test.cc 1 longhaul/io/file.h
put longhaul/train/saving/saver_fixture.h 1 longhaul/io/file.h
rejects "an arrow that only tests use" "$unused longhaul/train/saving uses the arrow to io;"
echo "the lint accepts and rejects as it should"
