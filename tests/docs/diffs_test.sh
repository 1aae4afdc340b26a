#!/usr/bin/env bash
# diffs_test.sh SOURCE_DIR: shows that diffs.sh accepts the pages as they are, and refuses a diff that is another one,
# or that the example does not have.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
pages=(README.md docs/coming_from_pytorch.md docs/guide/trainer.md)

put() {
  mkdir -p "$tree"/{docs/guide,examples}
  for file in "${pages[@]}" examples/plain_libtorch.cc; do cp "$source/$file" "$tree/$file"; done
}
# rejects WHAT WORDS SED-SCRIPT FILE...: the good tree with that change in these files.
rejects() {
  local what=$1 words=$2 script=$3 file said
  shift 3
  put
  for file; do
    sed -i -E "$script" "$tree/$file"
    ! cmp -s "$tree/$file" "$source/$file" || { echo "FAILED: $what: $file has not changed"; exit 1; }
  done
  if said=$(bash "$source/tests/docs/diffs.sh" "$tree"); then echo "FAILED: it accepts $what"; exit 1; fi
  [[ $said == *"$words"* ]] || { echo "FAILED: $what: said '$said'"; exit 1; }
}

source=$1
put
bash "$source/tests/docs/diffs.sh" "$tree" || { echo "FAILED: it rejects the pages as they are"; exit 1; }
for page in "${pages[@]}"; do
  rejects "another line in one page" "its diff is not that of" '/^\+      trainer\.log.*;$/d' "$page"
done
rejects "a long diff" "its diff adds 7 lines" 's/^(\+      trainer\.log.*;)$/\1\n+  });/' "${pages[@]}"
rejects "a page without a diff" "its diff is not that of" 's/^```diff$/```/' docs/guide/trainer.md
rejects "no diff at all" "has no diff" 's/^```diff$/```/' "${pages[@]}"
rejects "a line that the example lacks" '`int step = 0;` is not in' \
  's/^(\+      trainer\.log.*;)$/\1\n+    int step = 0;/' "${pages[@]}"
rejects "a context that the example lacks" '`loss.forward();` is not in' 's/loss\.backward/loss.forward/' "${pages[@]}"
rejects "an example without a line" '`return trainer.run([&] {` is not in' '/return trainer\.run/d' \
  examples/plain_libtorch.cc
rejects "an example in another order" '`return trainer.run([&] {` is not in' \
  '/return trainer\.run/d; s/^(int run\(.*)/return trainer.run([\&] {\n\1/' examples/plain_libtorch.cc
echo "the diffs are compared as they should be"
