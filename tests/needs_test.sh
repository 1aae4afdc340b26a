#!/usr/bin/env bash
# needs_test.sh PROGRAM: what ctest is told of tests that need something, and that no skipped test looks like a passed
# one (tests/skipped_tests.cc, longhaul/testing/needs_fixture.h). PROGRAM is made of needs_program.cc.
set -euo pipefail
program=$1
unset LONGHAUL_TEST_NEED LONGHAUL_HAVE

# expect STATUS TEXT NEED FILTER: in an entry of that need; "unset" is a run by hand.
expect() {
  local said status=0 environment=(env)
  [ "$3" = unset ] || environment+=("LONGHAUL_TEST_NEED=$3")
  said=$("${environment[@]}" "$program" --gtest_brief=1 --gtest_filter="$4" 2>&1) || status=$?
  if [ "$status" = "$1" ] && [[ $said == *"$2"* ]]; then return; fi
  echo "FAILED: need '$3', filter '$4': status $status instead of $1, or without '$2': $said"
  exit 1
}

expect 0 '' '' Ordinary.NeedsNothing
expect 1 'IsSkippedWithoutANeed was skipped (just so)' '' 'Ordinary.NeedsNothing:*WithoutANeed'
expect 1 'it needs genuine_files' '' '*DoesNotSay'
expect 1 'it needs genuine_files' disk 'Genuine.One'
expect 1 'no test has a name of this entry' genuine_files '*Authentic*'
expect 77 'skipped: 2 tests: none here' genuine_files 'Genuine.*-*Fails'
expect 1 '' genuine_files 'Genuine.*'
expect 0 '' unset 'Genuine.*:Ordinary.*-*Fails'
export LONGHAUL_HAVE=1
expect 0 '' genuine_files 'Genuine.*-*Fails'
echo "tests that need something are shown as they should be"
