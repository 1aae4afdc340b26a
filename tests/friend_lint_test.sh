#!/usr/bin/env bash
# friend_lint_test.sh SOURCE_DIR: shows that friend_lint.sh finds each friend in longhaul/runtime/plan, and no other.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree/longhaul/runtime/plan/parts" "$tree/longhaul/runtime/state"
put() { printf '%s\n' "$2" >"$tree/longhaul/runtime/$1"; }

put plan/plan.h 'class Plan {};  // a friend of nobody'
put plan/plan.cc 'const char* const kWord = "friend class A";'
put state/state.h '  friend class B;'
accepts "a tree without friends there"
put plan/befriended.h 'class Befriended { bool has_friend_ = false; };'
accepts "a name with that word"
for friend in '  friend class Prepared;' 'friend Plan;' '  friend bool operator==(const Plan& a, const Plan& b);' \
  '  friend class Prepared;  // friend:' '  friend class Prepared;  // it runs the plan' \
  '  template <typename T> friend'; do
  put plan/parts/a.h "$friend"
  rejects "$friend" "longhaul/runtime/plan/parts/a.h:1: a friend without a reason (// friend: ...): $friend"
done
put plan/parts/a.h '  friend class Prepared;  // friend: it cannot be told otherwise'
accepts "a friend with its reason"
echo "the lint accepts and rejects as it should"
