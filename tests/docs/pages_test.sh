#!/usr/bin/env bash
# pages_test.sh SOURCE_DIR: shows that pages.sh accepts good pages, and refuses each way to be out of step with the
# tree.
set -euo pipefail
pages=$1/tests/docs/pages.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put: the good tree.
put() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree"/{docs/guide,longhaul/base/{clocks,logs},longhaul/io/files}
  cat >"$tree/README.md" <<'PAGE'
# Title

## Where things are

| folder | contents |
| --- | --- |
| `longhaul/` | the library |
| `longhaul/base/`, `io/` | the foundation |

## Where to read next

[`Plan::run`](longhaul/base/plan.cc), [`Plan::size`](longhaul/base/plan.h), [`Plan`](longhaul/base/plan.h),
[`Plan`](longhaul/base/plan.cc), [`open_all`](longhaul/base/plan.cc), [the code](docs/code_tour.md#the-tour)

<!-- fragment: one call -->
```cpp
plan.run();
```
PAGE
  touch "$tree"/{CHANGELOG,CONTRIBUTING}.md
  echo '[a page](guide/page.md)' >"$tree/docs/guide.md"
  echo '# A page' >"$tree/docs/guide/page.md"
  { echo '# The tour'; printf '%s. [`Plan`](../longhaul/base/plan.h): x\n' {1..20}; } >"$tree/docs/code_tour.md"
  printf -- '- **%s**: x\n' a a{01..37} 'b, good' b-c >"$tree/docs/glossary.md"
  printf -- '- **%s**: x\n' z{01..20} >"$tree/docs/glossary_clusters.md"
  cat >"$tree/docs/architecture.md" <<'PAGE'
- `longhaul/base`: Errors. Uses nothing.
- `longhaul/io/files`: Files (by their names), as `base/plan.h` says. Uses base.

Two layers have folders that are not targets:

- `longhaul/base`: `clocks/` (the time); `logs/`
  (the log).

The folder `none/` (of nothing) is not there.
PAGE
  cat >"$tree/longhaul/base/plan.h" <<'CODE'
class Other;
// A plan.
class Plan : public Base {
 public:
  int size() const { return out.size(); }

 private:
  void run(int out);
  std::vector<int> slots_;
};
class Third {
  int third() const;
};
CODE
  cat >"$tree/longhaul/base/plan_test.cc" <<'CODE'
TEST(Plan, IsOne) {
}
TEST_F(Once,
       IsOnce) {
}
INSTANTIATE_TEST_SUITE_P(
    A, Many, Values(1));
TEST_P(Many, IsMany) {
}
CODE
  mkdir "$tree/tests"
  printf 'longhaul_test(far_test\n  SOURCES far_test.cc\n  DEPENDS base)\n' >"$tree/tests/CMakeLists.txt"
  echo 'TEST(Far, IsFar) {}' >"$tree/tests/far_test.cc"
  cat >"$tree/longhaul/base/plan.cc" <<'CODE'
void Plan::run(int out) {
  write(out);
  auto result = frame.take(out, "Plan::none(1)");
}
static int open_all(int n) { return n; }
CODE
}
# rejects WORDS FILE SED-SCRIPT: the good tree with that change.
rejects() {
  put
  sed -i -E "$3" "$tree/$2"
  local said
  if said=$(bash "$pages" "$tree"); then echo "FAILED: it accepts $3 in $2"; exit 1; fi
  [[ $said == *"$1"* ]] || { echo "FAILED: $3 in $2: said '$said'"; exit 1; }
}

put
bash "$pages" "$tree" || { echo "FAILED: it rejects good pages"; exit 1; }
for symbol in Plan::out Plan::write Plan::take Plan::none Plan::size Other::run write; do
  rejects "longhaul/base/plan.cc does not declare or define $symbol" README.md "s,Plan::run,$symbol,"
done
for symbol in Plan::third Plan::out Plan::slots Third::run; do
  rejects "longhaul/base/plan.h does not declare or define $symbol" README.md "s,Plan::size,$symbol,"
done
rejects "longhaul/base/plan.h does not declare or define Other" README.md 's,`Plan`\](.*plan.h),`Other`]\1,'
rejects "longhaul/base/none.h is not there" README.md 's,base/plan.h,base/none.h,'
rejects "no heading for #the-turn" README.md 's,#the-tour,#the-turn,'
rejects "instead of 1 to 20" docs/code_tour.md '/^7\. /d'
rejects "instead of 1 to 20" docs/code_tour.md '/^20\. /d'
rejects "instead of 1 to 20" docs/code_tour.md '$a 21. [`Plan`](../longhaul/base/plan.h): x'
rejects "instead of 1 to 20" docs/code_tour.md 's/^7\. .*/7. Nothing./'
put
rm "$tree/docs/code_tour.md"
said=$(bash "$pages" "$tree" 2>/dev/null) && { echo "FAILED: it accepts a missing tour"; exit 1; }
[[ $said == *"docs/code_tour.md: its stops are"* ]] || { echo "FAILED: a missing tour: said '$said'"; exit 1; }
for tests in "'Plan\*'" "'Plan.IsOne:A/Many.Is\*'" "'Once.\*:-Once.Not'" "'\*IsMany\*'"; do
  put
  sed -i "s,^# A page,& \`base_test --gtest_filter=$tests\`," "$tree/docs/guide/page.md"
  bash "$pages" "$tree" || { echo "FAILED: it rejects the tests $tests"; exit 1; }
done
for tests in NoSuchTest.\* Plan.IsTwo Many.IsMany Plan.IsOne:Plans.\*; do
  rejects "docs/guide/page.md:1: base_test has no test ${tests#Plan.IsOne:}" docs/guide/page.md \
    "s,^# A page,& \`base_test --gtest_filter='$tests'\`,"
done
rejects "docs/guide/page.md:1: none_test has no test" docs/guide/page.md \
  "s,^# A page,& \`none_test --gtest_filter='Plan.IsOne'\`,"
put
sed -i "s,^# A page,& \`far_test --gtest_filter='Far.\*'\`," "$tree/docs/guide/page.md"
bash "$pages" "$tree" || { echo "FAILED: it rejects a test of several layers"; exit 1; }
rejects "docs/guide/page.md:1: far_test has no test Plan.IsOne" docs/guide/page.md \
  "s,^# A page,& \`far_test --gtest_filter='Plan.IsOne'\`,"
rejects "docs/guide.md: does not link to docs/guide/page.md" docs/guide.md 's/guide\/page/code_tour/'
rejects "> longhaul/io" README.md 's/, `io\/`//'
rejects "> longhaul/base" README.md '/^\| `longhaul\/base/d'
rejects "< longhaul/none" README.md 's/, `io\/`/&, `none\/`/'
rejects "< longhaul/base/none" docs/architecture.md 's,`logs/`,`none/`,'
rejects "> longhaul/base/logs" docs/architecture.md 's,`logs/`,& and,'
rejects "> longhaul/io/files" docs/architecture.md '/^- `longhaul.io/d'
rejects "docs/architecture.md:2: longhaul/io/plan.h is not there" docs/architecture.md 's,base/plan.h,io/plan.h,'
rejects "docs/architecture.md:2: tests/plan.cc is not there" docs/architecture.md 's,base/plan.h,tests/plan.cc,'
rejects "docs/glossary.md: its terms are 41 instead of" docs/glossary.md '$a - **c**: x'
rejects "docs/glossary_clusters.md: its terms are 0 instead of" docs/glossary_clusters.md d
rejects "docs/glossary_clusters.md: its terms are 9 instead of" docs/glossary_clusters.md '10,$d'
rejects "docs/glossary.md: its terms are 19 instead of 20" docs/glossary.md '20,$d'
rejects "docs/glossary.md: its terms are not sorted" docs/glossary.md 's/a07/a99/'
rejects "docs/glossary.md: its terms are not sorted" docs/glossary.md 's/a07/A08/'
rejects "a block of C++ without" README.md 's/^<!-- fragment: .*/<!-- fragment -->/'
rejects "a block of C++ without" README.md '/^<!-- fragment/d'
rejects "docs/guide.md:2: bash cannot read this block" docs/guide.md "$(printf '1a ```bash\\\nif true; then\\\n```')"
rejects "121 columns" docs/guide.md "\$a $(printf '%0121d' 0)"
echo "the pages are checked as they should be"
