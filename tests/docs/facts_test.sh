#!/usr/bin/env bash
# facts_test.sh SOURCE_DIR: shows that facts.sh accepts a list in step with the tests, refuses each way to be out of
# step, and brings the tests' names into the list.
set -euo pipefail
facts=$1/tests/docs/facts.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/docs" "$tree/longhaul/io"
export FACT_COUNTS='AA 2 BB 1'
unset LONGHAUL_FACTS

# put: the good tree.
put() {
  cat >"$tree/docs/compatibility.md" <<'PAGE'
# Compatibility

- AA-9 (held): a list elsewhere

## The facts, one by one

- AA-1 (held): one
  - tests: `File.IsOne`, `Long.Name`
  - in C++: so
- AA-2 (changed): two
  - tests: `File.IsTwo`
  - why: better so
- BB-1 (not applicable): three
  - why: no threads here
PAGE
  cat >"$tree/longhaul/io/file_test.cc" <<'TESTS'
TEST(File, IsOne) {  // AA-1
}
TEST_F(Long,
       Name) {  // AA-1, ZZ-1
}
TEST_P(File, IsTwo) {  // unlike AA-2
}
TEST(File, IsUntagged) {  // in ASCII-7
}
TESTS
}
accepts() {
  bash "$facts" "$tree" || { echo "FAILED: $1 is refused"; exit 1; }
}
# rejects WORDS FILE SED-SCRIPT: the good tree with that change.
rejects() {
  put
  sed -i -E "$3" "$tree/$2"
  local said
  if said=$(bash "$facts" "$tree"); then echo "FAILED: accepted: $1"; exit 1; fi
  [[ $said == *"$1"* ]] || { echo "FAILED: said '$said' instead of: $1"; exit 1; }
}

put
accepts "a list in step"
said=$(bash "$facts" "$tree" --with-list) && status=0 || status=$?
[ "$status" = 77 ] && [[ $said == "skipped: LONGHAUL_FACTS"* ]] || { echo "FAILED: no list: $status, '$said'"; exit 1; }

page=docs/compatibility.md
tests=longhaul/io/file_test.cc
rejects 'AA-1 is held, but no test is tagged' $tests 's/AA-1/ZZ-2/'
rejects 'AA-1 is held, but no test is tagged' $tests 's/AA-1/unlike AA-1/'
rejects 'AA-1 is held, but tagged as unlike' $tests 's/ZZ-1/unlike AA-1/'
rejects 'AA-1 names other tests' $page 's/`File.IsOne`, //'
rejects 'AA-1 names other tests' $page 's/File.IsOne/File.IsNone/'
rejects 'AA-1 names other tests' $page '/tests: `File.IsOne`/d'
rejects 'AA-2 is changed without a reason' $page '/better so/d'
rejects 'BB-1 is not applicable without a reason' $page '/no threads here/d'
rejects 'BB-1 is not applicable, but tagged' $tests 's/AA-2/AA-2, BB-1/'
rejects 'AA-2 is open, but tagged' $page 's/changed/open/'
rejects 'BB-1 is open, and it does not say what is missing' $page 's/not applicable/open/;/no threads here/d'
rejects 'unknown state' $page 's/changed/kept/'
rejects 'AA-1 does not say' $page 's/: one$/:/'
rejects 'AA-1 has neither tests nor a why in this line' $page 's/- in C\+\+: so/- more: so/'
rejects 'AA-1 has neither tests nor a why in this line' $page 's/^  - tests: `File.IsOne`, /   /'
rejects 'AA-2 has tests or a why twice' $page 's/^  - why: better so/&\n&/'
rejects 'AA-1 is held, but differs: no more' $page 's/- in C\+\+: so/- why: no more/'
rejects 'AA-3 does not follow' $page 's/^- AA-2 /- AA-3 /'
rejects 'AA-12 does not follow' $page 's/^- AA-2 /- AA-12 /'
rejects 'AA-1 does not follow' $page 's/^- AA-1 /- QQ /;s/^- AA-2 /- AA-1 /;s/^- QQ /- AA-2 /'
rejects 'AA-1 is there twice' $page 's/^- AA-2 /- AA-1 /'
rejects 'AA has 1 facts instead of 2' $page '/^- AA-2/,/better so/d'
rejects 'BB has 0 facts instead of 1' $page '/^- BB-1/,/threads/d'
rejects 'AA-3 is not in' $tests 's/AA-1/AA-3/'
rejects 'a fact begins with its number' $page 's/^- BB-1 \(/- (/'
rejects 'a fact begins with its number' $page 's/^- BB-1 .*:/- BB-1:/'
rejects 'this line belongs to no fact' $page 's/^- BB-1 .*/| BB-1 | three |/'
rejects '"AA-1" stands above the test' $tests 's/^TEST\(File, IsOne\).*/\/\/ AA-1\n&/'
rejects 'is not a tag' $tests 's/unlike AA-2/AA-2 to AA-3/'

put
sed -i -E 's/^- AA-2 /- AA-10 /' "$tree/$page"
sed -i -E 's/AA-2/AA-10/' "$tree/$tests"
accepts "a section that begins with a ten"
put
printf -- '- AA-1 [I] one\n- AA-2 [T x] two, like AA-3\n- BB-1 [I] three\n' >"$tree/facts.md"
export LONGHAUL_FACTS=$tree/facts.md
accepts "a list of the facts there are"
bash "$facts" "$tree" --with-list || { echo "FAILED: --with-list refuses a list of the facts there are"; exit 1; }
rejects 'AA-10 is not a fact of' $page 's/^- AA-2 /- AA-10 /'
rejects 'AA-2 is not in' $page 's/^- AA-2 /- AA-10 /'

# A fact of servers that the list says is tested.
export FACT_COUNTS='SS 2'
printf -- '- SS-1 [T x] one\n- SS-2 [I] two\n' >"$tree/facts.md"
put
sed -i -E 's/AA-/SS-/; /^- BB-1/,$d' "$tree/$page"
sed -i -E 's/AA-/SS-/' "$tree/$tests"
if said=$(bash "$facts" "$tree"); then echo "FAILED: accepted: a fact of servers without a connection"; exit 1; fi
[[ $said == *"SS-1 is tested over no real connection"* && $said != *SS-2* ]] || { echo "FAILED: said '$said'"; exit 1; }
mkdir -p "$tree/longhaul/grpc"
mv "$tree/$tests" "$tree/longhaul/grpc"
accepts "a fact of servers that is tested over a connection"
rm -r "$tree/longhaul/grpc"
export FACT_COUNTS='AA 2 BB 1'
unset LONGHAUL_FACTS

put
sed -i -E 's/held/open/; /tests:/d' "$tree/$page"
sed -i -E "s/in C\+\+: so/in C++: $(printf 'a long way %.0s' {1..12})- 5./" "$tree/$page"
bash "$facts" "$tree" --write
accepts "what --write has made of open facts, missing tests and long lines"
diff - <(sed -n '/AA-9/p; /^- AA-1/,$p' "$tree/$page") <<'WRITTEN' || { echo "FAILED: --write"; exit 1; }
- AA-9 (open): a list elsewhere
- AA-1 (held): one
  - tests: `File.IsOne`, `Long.Name`
  - in C++: a long way a long way a long way a long way a long way a long way a long way a long way a long way a long
    way a long way a long way - 5.
- AA-2 (changed): two
  - tests: `File.IsTwo`
  - why: better so
- BB-1 (not applicable): three
  - why: no threads here
WRITTEN
cp "$tree/$page" "$tree/once.md"
bash "$facts" "$tree" --write
diff "$tree/once.md" "$tree/$page" || { echo "FAILED: --write changes what it wrote"; exit 1; }
echo "the list of facts is checked and written as it should be"
