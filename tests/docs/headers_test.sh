#!/usr/bin/env bash
# headers_test.sh SOURCE_DIR: shows that headers.sh accepts pages and programs that use the public headers, and refuses
# each way to be out of step with their list.
set -euo pipefail
source=$1
headers=$source/tests/docs/headers.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put: the good tree.
put() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{cmake,docs/guide,examples,longhaul/io,longhaul/proto,tests/consumer,tests/subproject,tests/docs}
  printf '# HEADER COMPONENT\nlonghaul/io.h io\nlonghaul/proto/event.pb.h proto\n' >"$tree/cmake/public_headers.txt"
  cp "$source/cmake/LonghaulHeaders.cmake" "$tree/cmake"
  echo '#include "longhaul/io/file.h"' >"$tree/longhaul/io.h"
  echo 'import "longhaul/proto/summary.proto";' >"$tree/longhaul/proto/event.proto"
  touch "$tree"/longhaul/{io/file.h,io/other.h,proto/summary.proto}
  cat >"$tree/docs/headers.md" <<'PAGE'
- `<longhaul/proto/event.pb.h>` (`proto`): events
- `<longhaul/io.h>` (`io`): files, in lines that
  are continued

The others are internal, but 2 of them are installed.
PAGE
  echo '#include <longhaul/io.h>' | tee "$tree/docs/guide/files.md" >"$tree/README.md"
  echo '#include "longhaul/io.h"' | tee "$tree/examples/files.cc" >"$tree/tests/consumer/files.cc"
  echo '#include "longhaul/io/file.h"' >"$tree/examples/files_test.cc"
}
# rejects WORDS FILE SED-SCRIPT: the good tree with that change.
rejects() {
  put
  sed -i -E "$3" "$tree/$2"
  local said
  if said=$(bash "$headers" "$tree"); then echo "FAILED: accepted: $1"; exit 1; fi
  [[ $said == *"$1"* ]] || { echo "FAILED: said '$said' instead of: $1"; exit 1; }
}

put
bash "$headers" "$tree" || { echo "FAILED: a tree in step is refused"; exit 1; }

rejects '< longhaul/io.h io' docs/headers.md '/io.h/d'
rejects '> longhaul/io.h base' docs/headers.md 's/`io`/`base`/'
rejects '> longhaul/proto/event.pb.h proto' cmake/public_headers.txt '/event/d'
rejects 'longhaul/tensor.h is not there' cmake/public_headers.txt 's,longhaul/io.h io,longhaul/tensor.h tensor,'
rejects 'README.md:1: longhaul/io/file.h is not a public header' README.md 's,io.h,io/file.h,'
rejects 'docs/guide/files.md:1: longhaul/io/file.h is not a public header' docs/guide/files.md 's,io.h,io/file.h,'
rejects 'examples/files.cc:1: longhaul/io/file.h is not a public header' examples/files.cc 's,io.h,io/file.h,'
rejects 'tests/consumer/files.cc:1: longhaul/io/file.h is not a public header' tests/consumer/files.cc \
  's,io.h,io/file.h,'
rejects 'does not say that 3 internal headers are installed' longhaul/io.h '$a #include "longhaul/io/other.h"'
rejects 'does not say that 1 internal headers are installed' longhaul/io.h d
rejects 'does not say that 2 internal headers are installed' docs/headers.md 's/2 of them/12 of them/'

put
for i in {1..39}; do
  touch "$tree/longhaul/more$i.h"
  echo "longhaul/more$i.h io" >>"$tree/cmake/public_headers.txt"
  echo "- \`<longhaul/more$i.h>\` (\`io\`): more" >>"$tree/docs/headers.md"
done
said=$(bash "$headers" "$tree") && { echo "FAILED: 41 headers are accepted"; exit 1; }
[[ $said == *"more than 40 headers"* ]] || { echo "FAILED: said '$said'"; exit 1; }
echo "headers.sh accepts and rejects as it should"
