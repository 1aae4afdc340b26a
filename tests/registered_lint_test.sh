#!/usr/bin/env bash
# registered_lint_test.sh SOURCE_DIR: shows that registered_lint.sh names what stands among the tests and never runs.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree"/{benchmarks,examples,scripts,tests/docs,longhaul/base}
list=$tree/tests/CMakeLists.txt

write_list() {
  cat >"$list" <<'LIST'
file(GLOB lints CONFIGURE_DEPENDS *_lint.sh *_lint_test.sh)
foreach(lint IN LISTS lints)
  cmake_path(GET lint STEM name)
  add_test(NAME ${name} COMMAND bash ${lint} ${PROJECT_SOURCE_DIR})
endforeach()
add_test(NAME format COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/format.sh ${PROJECT_SOURCE_DIR})
longhaul_test(process_test SOURCES docs/process_test.cc)
LIST
}

write_list
touch "$tree"/tests/{format,skipped,one_lint,one_lint_test}.sh "$tree"/tests/docs/{process_test.cc,pages.sh}
touch "$tree/longhaul/base/error_test.cc"
echo 'bash tests/skipped.sh' >"$tree/scripts/test"
echo 'add_test(NAME doc_pages COMMAND bash pages.sh)' >"$tree/tests/docs/CMakeLists.txt"
echo 'longhaul_layer(base TESTS error_test.cc)' >"$tree/longhaul/base/CMakeLists.txt"
accepts "a tree in which all of them run"

sed -i '/format/d' "$list"
rejects "a script that nothing names" "tests/format.sh: no CMakeLists.txt adds it"
echo '# format.sh' >>"$list"
rejects "a script that only a comment names" "tests/format.sh: no CMakeLists.txt adds it"
echo 'add_test(NAME f COMMAND bash reformat.sh)' >>"$list"
rejects "a script whose name is the end of another" "tests/format.sh: no CMakeLists.txt adds it"
write_list
echo >"$tree/tests/docs/CMakeLists.txt"
rejects "a script of a folder below" "tests/docs/pages.sh: no CMakeLists.txt adds it"
echo 'add_test(NAME doc_pages COMMAND bash pages.sh)' >"$tree/tests/docs/CMakeLists.txt"
echo >"$tree/scripts/test"
rejects "a script that no other runs any more" "tests/skipped.sh: no CMakeLists.txt adds it"
echo '. "$1/tests/skipped.sh"' >"$tree/tests/one_lint_test.sh"
accepts "a script that a test sources"
echo '# . "$1/tests/skipped.sh"' >"$tree/tests/one_lint_test.sh"
rejects "a script that a test's comment names" "tests/skipped.sh: no CMakeLists.txt adds it"
echo 'bash tests/skipped.sh' >"$tree/scripts/test"

for line in GLOB add_test.*lint; do
  sed -i "/$line/d" "$list"
  rejects "lints that are not added" "tests/CMakeLists.txt: does not add all"
  write_list
done
touch "$tree/tests/two_lint.sh"
rejects "a lint without a test" "tests/two_lint.sh: has no test"
mv "$tree/tests/two_lint.sh" "$tree/tests/docs/two_lint.sh"
rejects "a lint in another folder" "tests/docs/two_lint.sh: a lint stands in tests/"
rm "$tree/tests/docs/two_lint.sh"
echo >"$tree/longhaul/base/CMakeLists.txt"
rejects "a test that is not compiled" "longhaul/base/error_test.cc: no CMakeLists.txt compiles it"
echo "the lint accepts and rejects as it should"
