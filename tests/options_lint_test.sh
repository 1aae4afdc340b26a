#!/usr/bin/env bash
# options_lint_test.sh SOURCE_DIR: options_lint.sh accepts and rejects what it should.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree/longhaul/base"

# header LINE...: the tree is that one header.
header() {
  printf '%s\n' "$@" >"$tree/longhaul/base/a.h"
}
# fields NAME COUNT: so many lines with a field each.
fields() {
  for ((i = 1; i <= $2; ++i)); do echo "  int $1_$i = 0;"; done
}
rejects() {
  complains "$1"
  [[ $said == "longhaul/base/a.h:"*": $2"* ]] || failed "$1: said '$said'"
}

header 'struct AOptions {' "$(fields a 20)" '};'
accepts "20 fields"
header 'struct AOptions {' "$(fields a 21)" '};'
rejects "21 fields" "AOptions has 21 fields"
header 'struct Other {' "$(fields a 20)" '};'
accepts "20 fields of a struct with another name"
header 'struct Other {' "$(fields a 21)" '};'
rejects "21 fields of a struct with another name" "Other has 21 fields"
header 'struct Other : Base {' "$(fields a 21)" '};'
rejects "21 fields of a struct with a base" "Other has 21 fields"
header 'struct Other {' '  std::string name;' "  struct AOptions {" "$(fields a 21)" '  };' '};'
rejects "21 fields of options within another struct" "AOptions has 21 fields"
header 'struct Other {' '  std::string name;' '};'
accepts "a field without an initializer of a struct with another name"
header '  struct AOptions {' "$(fields a 21)" '  };'
rejects "21 fields within a class" "AOptions has 21 fields"
end="  // Longhaul's own; TensorFlow's names end here."
header 'struct AOptions {' "$(fields a 20)" "$end" "$(fields b 4)" '};'
accepts "20 of TensorFlow and four of ours"
header 'struct AOptions {' "$(fields a 20)" "$end" "$(fields b 5)" '};'
rejects "20 of TensorFlow and five of ours" "AOptions has 25 fields"
header 'struct AOptions {' "$(fields a 16)" "$end" "$(fields b 4)" '};'
accepts "16 of TensorFlow and four of ours"
header 'struct AOptions {' "$(fields a 16)" "$end" "$(fields b 5)" '};'
rejects "16 of TensorFlow and five of ours" "AOptions has 21 fields"
header 'struct AOptions {' "$(fields a 21)" "$end" '};'
rejects "21 of TensorFlow" "AOptions has 21 fields"
header 'struct AOptions {' "$(fields a 20)" "$end" '};' 'struct BOptions {' "$(fields b 21)" '};'
rejects "21 fields after a struct with 20 of TensorFlow" "BOptions has 21 fields"
header 'struct AOptions {' '  // int a;' '  bool is_set() const;' '  int sum() const { return 1; }' "$(fields a 20)" \
  '};'
accepts "functions and comments, which are not counted"
header 'struct AOptions {' '  int sum() const { return 1; }' "$(fields a 21)" '};'
rejects "21 fields after a function with its body" "AOptions has 21 fields"
header 'struct AOptions {' '  std::function<void(int a)> f{};' '  std::map<std::string, int> m{' '    {"a;", 1}};' \
  "$(fields a 19)" '};'
rejects "21 fields, one on two lines" "AOptions has 21 fields"

three() {
  header "struct AOptions {" "  $1" "};" "struct BOptions {" "  $2" "};" "struct COptions {" "  $3" "};"
}
three 'int limit = 1;' 'int limit = 1;' 'int other = 1;'
accepts "a field of two"
three 'int limit = 1;' 'int limit = 2;' 'int limit{3};'
rejects "a field of three" '`limit` is declared in AOptions BOptions COptions'
three 'int limit = 1;' 'double limit = 2;' 'std::optional<int> limit{};'
rejects "a field of three types" '`limit` is declared in AOptions BOptions COptions'
three 'int limit = 1;' 'int limit[2] = {1, 2};' 'std::map<int, int> limit{};'
rejects "a field that is an array" '`limit` is declared in AOptions BOptions COptions'
three 'LimitOptions limit{};' 'LimitOptions limit{};' 'LimitOptions limit{};'
accepts "the home of options as a member"
for handle in 'Limit* limit = nullptr;' 'std::shared_ptr<Limit> limit{};'; do
  three "$handle" "$handle" "$handle"
  rejects "a handle of three: $handle" '`limit` is declared in AOptions BOptions COptions'
done
three 'Clock* clock = nullptr;' 'std::shared_ptr<Clock> clock{};' 'Clock clock{};'
accepts "the world, an exception with a reason"
three 'Seconds timeout{1};' 'Seconds timeout{1};' 'Seconds timeout{1};'
accepts "an exception in as many structs as it names"
printf '%s\n' 'struct DOptions {' '  Seconds timeout{1};' '};' >>"$tree/longhaul/base/a.h"
rejects "an exception in one more" '`timeout` is declared in AOptions BOptions COptions DOptions'
for head in 'class AOptions {' 'class AOptions : public Base {' 'struct AOptions : Base {' \
  'struct AOptions final : Base {'; do
  header "$head" '  int a = 0;' '};'
  rejects "$head" "options are a struct without a base: $head"
done
header 'class AOptions;' 'struct BOptions;' 'struct BOptions final {' '  int a = 0;' '};'
accepts "declarations of options"
three 'std::string checkpoint_dir{};' 'std::string checkpoint_dir{};' 'std::string checkpoint_dir{};'
accepts "an exception with a reason"

header 'struct AOptions {' '  std::string name;' '};'
rejects "a field without an initializer" "AOptions::name has no initializer"
header 'struct AOptions {' '  std::function<void(int)> call;  // = 0' '};'
rejects "a function without an initializer" "AOptions::call has no initializer"
header 'struct AOptions {' '  std::string name{};' '  Seconds wait{1};' '  int n = 0;' '};'
accepts "fields with initializers"

for ((i = 1; i <= 40; ++i)); do echo "struct A${i}Options {"; echo '};'; done >"$tree/longhaul/base/a.h"
complains "exceptions that nothing needs"
[[ $said == *'`checkpoint_dir` is no exception any more'* ]] || failed "said '$said'"
echo "the lint accepts and rejects as it should"
