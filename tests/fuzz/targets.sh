#!/usr/bin/env bash
# targets.sh ROOT: each fuzz target has a source, a corpus and an item in docs/fuzzing.md's first list, and the other
# way round; that list names each file of a logdir (the first list of docs/formats/logdir.md) and each page of a format.
# The names of an item stand before its first colon.
set -euo pipefail
cd "$1"
page=docs/fuzzing.md
status=0

complain() {
  echo "$*"
  status=1
}
# first_list PAGE: the items of its first list, one a line.
first_list() {
  awk '
    /^- / { if (item != "") print item; item = substr($0, 3); next }
    item != "" && /^ / { sub(/^ +/, ""); item = item " " $0; next }
    item != "" { exit }
    END { if (item != "") print item }' "$1"
}
# heads: what stands before the first colon of each line.
heads() {
  sed 's/: .*//'
}
# names: what stands in `...` on stdin, a line for each.
names() {
  grep -o '`[^`]*`' | tr -d '`'
}

targets=$(sed -n 's/^longhaul_fuzz_target(\([a-z_0-9]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
list=$(first_list $page)
items=$(heads <<<"$list" | names)
[ -n "$targets" ] && [ -n "$items" ] || complain "no targets, or no list in $page, are found"
for target in $targets; do
  [ -f "tests/fuzz/${target}_fuzz.cc" ] || complain "tests/fuzz/${target}_fuzz.cc is not there"
  [ -n "$(ls "tests/fuzz/corpus/$target" 2>/dev/null)" ] || complain "tests/fuzz/corpus/$target is empty"
  grep -qxF "$target" <<<"$items" || complain "$page has no item for the target $target"
done
for item in $items; do
  grep -qxF "$item" <<<"$targets" || complain "$page has an item for $item, which is not a target"
done
for source in tests/fuzz/*_fuzz.cc; do
  name=$(basename "$source" _fuzz.cc)
  grep -qxF "$name" <<<"$targets" || complain "$source is not a target in tests/fuzz/CMakeLists.txt"
done

# Nobody reads what is in it.
unread='chief.lock'
while read -r file; do
  grep -qxF "$file" <<<"$unread" && continue
  grep -qF "\`${file#model.ckpt-200}\`" <<<"$list" ||
    complain "no target in $page reads $file (docs/formats/logdir.md)"
done < <(first_list docs/formats/logdir.md | heads | names)
for format in docs/formats/*.md; do
  [ "$format" = docs/formats/logdir.md ] && continue
  grep -qF "$format" <<<"$list" || complain "no target in $page reads what $format describes"
done
exit $status
