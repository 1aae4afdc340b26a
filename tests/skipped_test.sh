#!/usr/bin/env bash
# skipped_test.sh SOURCE_DIR: what skipped.sh makes of what ctest writes here.
set -euo pipefail
script=$1/tests/skipped.sh
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# expect TEXT: skipped.sh prints that of a run of the tests.
expect() {
  local said
  ctest --test-dir "$folder" --output-junit "$folder/junit.xml" >"$folder/log" 2>&1 || true
  said=$(bash "$script" "$folder/junit.xml")
  if [ "$said" = "$1" ]; then return; fi
  printf 'FAILED: it said\n%s\nand not\n%s\n' "$said" "$1"
  exit 1
}

cat >"$folder/CTestTestfile.cmake" <<'TESTS'
add_test(passed sh -c "echo skipped: no, it ended well")
add_test(failed sh -c "echo skipped: no, it failed; exit 1")
TESTS
expect 'skipped: none of 2'
cat >>"$folder/CTestTestfile.cmake" <<'TESTS'
add_test(says_why sh -c "seq 1000; echo 'skipped: 2 tests: <one> & \"another\"'; echo skipped: 1 test: more; exit 77")
add_test(says_nothing sh -c "exit 77")
add_test(says_it_first sh -c "echo skipped: so it is; exit 77")
set_tests_properties(says_why says_nothing says_it_first PROPERTIES SKIP_RETURN_CODE 77)
TESTS
expect 'skipped: 3 of 5
  says_why: 2 tests: <one> & "another"; 1 test: more
  says_nothing: it does not say why
  says_it_first: so it is'
echo "skipped tests are counted, with their reasons"
