#!/usr/bin/env bash
# targets.sh ROOT: each fuzz target has a source, a corpus and a row in docs/fuzzing.md's first table, and the other way
# round; that table names each file of a logdir (the first table of docs/formats/logdir.md) and each page of a format.
set -euo pipefail
cd "$1"
page=docs/fuzzing.md
status=0

complain() {
  echo "$*"
  status=1
}
# first_table PAGE: the rows of its first table.
first_table() {
  awk '/^\|/ { print; seen = 1; next } seen { exit }' "$1" | tail -n +3
}
# names: what stands in `...` on stdin, a line for each.
names() {
  grep -o '`[^`]*`' | tr -d '`'
}

targets=$(sed -n 's/^longhaul_fuzz_target(\([a-z_0-9]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
table=$(first_table $page)
rows=$(cut -d'|' -f2 <<<"$table" | names)
[ -n "$targets" ] && [ -n "$rows" ] || complain "no targets, or no table in $page, are found"
for target in $targets; do
  [ -f "tests/fuzz/${target}_fuzz.cc" ] || complain "tests/fuzz/${target}_fuzz.cc is not there"
  [ -n "$(ls "tests/fuzz/corpus/$target" 2>/dev/null)" ] || complain "tests/fuzz/corpus/$target is empty"
  grep -qxF "$target" <<<"$rows" || complain "$page has no row for the target $target"
done
for row in $rows; do
  grep -qxF "$row" <<<"$targets" || complain "$page has a row for $row, which is not a target"
done
for source in tests/fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  grep -qxF "$name" <<<"$targets" || complain "$source is not a target in tests/fuzz/CMakeLists.txt"
done

# Nobody reads what is in it.
unread='chief.lock'
while read -r file; do
  grep -qxF "$file" <<<"$unread" && continue
  grep -qF "\`${file#model.ckpt-200}\`" <<<"$table" ||
    complain "no target in $page reads $file (docs/formats/logdir.md)"
done < <(first_table docs/formats/logdir.md | cut -d'|' -f2 | names)
for format in docs/formats/*.md; do
  [ "$format" = docs/formats/logdir.md ] && continue
  grep -qF "$format" <<<"$table" || complain "no target in $page reads what $format describes"
done
exit $status
