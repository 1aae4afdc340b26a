#!/usr/bin/env bash
# names_lint.sh SOURCE_DIR: no source and no page has a name that is in the column "before" of the newest section of
# CHANGELOG.md, in its table "now | before"; and no header, page or text of a message has words of the list `better`
# below, for which it has plainer ones.
#
# A name that is also in the column "now", or of a row that says "under the same names", has only moved: it may be used,
# but not with its old class (`OldOptions::name`). A name that is a word of prose too is looked for as the table writes
# it: `ends()` with its bracket, `Loan<T>` with its `<`, `OldOptions::lock` with its class, and `lock` not at all.
#
# Two kinds of pages are about other names: docs/headers.md has a table of the old ones for those who still write them,
# and docs/coming_from_*.md names what other libraries have.
set -euo pipefail
cd "$1"

# Extended regular expressions, one for each name.
old_names() {
  awk '
    # What is in backticks.
    function names_of(cell, names,    n, parts, i) {
      n = split(cell, parts, "`")
      for (i = 2; i <= n; i += 2) names[i / 2] = parts[i]
      return int(n / 2)
    }
    function bare(name) {
      sub(/[(<].*/, "", name)
      return name
    }
    function stays(name) {
      now[bare(name)] = now[last_part(bare(name))] = 1
    }
    function last_part(name) {
      sub(/.*[.:]/, "", name)
      return name
    }
    # "" for one that may be used, or that prose cannot be told from.
    function expression(name,    bare_name, mark) {
      bare_name = last_part(bare(name))
      mark = "\\>"
      if (bare_name ~ /^[A-Za-z]?[a-z]+$/) mark = name ~ /[(]/ ? "\\(" : name ~ /</ ? "<" : ""
      if (bare_name in now || mark == "") {
        bare_name = bare(name)
        mark = bare_name ~ /::/ ? "\\>" : ""
      }
      return bare_name in now || mark == "" ? "" : "\\<" bare_name mark
    }
    /^## / && ++sections == 2 { exit }
    !/^\|/ { in_table = 0 }
    sections == 1 && /^\| now \| before \|$/ { in_table = 1 }
    in_table {
      split($0, cells, "|")
      n = names_of(cells[2], names)
      for (i = 1; i <= n; i++) stays(names[i])
      n = names_of(cells[3], names)
      for (i = 1; i <= n; i++) {
        old[++count] = names[i]
        if (cells[2] ~ /under the same names/) now[last_part(bare(names[i]))] = 1
      }
    }
    END {
      for (i = 1; i <= count; i++) if (expression(old[i]) != "") print expression(old[i])
    }' CHANGELOG.md
}

mapfile -t places < <(find . -mindepth 1 -maxdepth 1 ! -name .git ! -name 'build*' ! -name CHANGELOG.md -printf '%P\n' |
  LC_ALL=C sort)
# Lines "WORDS=BETTER ONES", the first an extended regular expression.
better='beside\>=next to, with, or compared with
goes on( [^t]|[^ ]|$)=continues ("goes on top" is a place)
lets? go of=releases
passed over\>=skipped
(is|are) told of\>=is notified of
comes? out as\>=is thrown as
held up\>=stalled
(which|it|that|size|name) is no (number|index|name|such|task|list)\>=is not a ...
Seconds (the_)?[a-z_]*patience=timeout: patience is a term of early stopping
mark_torn=mark_inconsistent
doom(s|ed)?\>=mark for deletion'

# The headers that users may reach and all pages; and of sources the lines with a literal.
texts() {
  find . \( -path './build*' -o -path ./.git \) -prune -o \( -path './longhaul/*.h' -o -name '*.md' \) \
    ! -name '*_fixture.h' ! -name 'CHANGELOG.md' ! -path './docs/coming_from_*' -print0 |
    LC_ALL=C sort -z | xargs -0 -r grep -nHE '' | sed 's|^\./||'
  find longhaul -name '*.cc' ! -name '*_test.cc' ! -name '*_fixture.cc' -print0 |
    LC_ALL=C sort -z | { xargs -0 -r grep -nHE '"' || true; } | sed -E 's/^([^:]*:[0-9]+:)[^"]*"(.*)"[^"]*$/\1"\2"/'
}

status=0
text=$(texts)
while IFS='=' read -r words plain; do
  hits=$(grep -E "^[^:]*:[0-9]+:.*\\<($words)" <<<"$text") || continue
  echo "$hits" | sed "s|\$|  <- in plainer words: $plain|"
  status=1
done <<<"$better"
readonly worded=$status

status=0
found=$(grep -rnIE -f <(old_names) -- "${places[@]}") || status=$?
[ "$status" -le 1 ] || exit "$status"
found=$(grep -vE '^docs/(headers|coming_from_[a-z]+)\.md:' <<<"$found") || true
[ -n "$found" ] || exit "$worded"
echo "$found" | sed 's/$/  <- an old name; CHANGELOG.md has the new one/'
exit 1
