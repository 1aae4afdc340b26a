#!/usr/bin/env bash
# tensorflow_names.sh ROOT: holds docs/coming_from_tensorflow.md and tests/docs/tensorflow_names.cc in step. The page is
# the source of truth: every piece of C++ in its lists is in the program, word for word but for spaces and line breaks,
# not in a comment, and every header that an item names is included. The program has no #if. An item is
#
#   - `tf.x` `tf.y`: C++ or "not here". Notes
#
# with further lines below the first name, and it may end after the C++. Items are sorted by their first name, no name
# comes twice, and "not here" says what to do instead. Each name is one of tensorflow_v1_names.txt, or a member of a
# class that is there.
set -euo pipefail
export LC_ALL=C
cd "$1"
page=docs/coming_from_tensorflow.md
program=tests/docs/tensorflow_names.cc
names=tests/docs/tensorflow_v1_names.txt

# Without spaces, but for those between two words.
tighten() { sed -E 's/[[:space:]]+/ /g; s/ ?([^A-Za-z0-9_ ]) ?/\1/g; s/^ //; s/ $//'; }

code=$(mktemp)
trap 'rm -f "$code"' EXIT
sed -E 's,(^|[^:"])//.*,\1,' "$program" | tr '\n' ' ' | sed -E 's,/\*([^*]|\*+[^*/])*\*+/, ,g' | tighten >"$code"

# "LINE:C++" for each piece, tightened; what the page gets wrong by itself goes to stderr.
pieces() {
  awk -v page="$page" -v names_file="$names" '
    BEGIN { while ((getline line < names_file) > 0) if (line ~ /^[a-z]/) is_known[line] = 1 }
    function owner(name) { return match(name, /\.[^.]*$/) ? substr(name, 1, RSTART - 1) : "" }
    function is_name(name) { return name in is_known || owner(name) in is_known && owner(name) ~ /\.[A-Z][^.]*$/ }
    function complain(what) { print page ":" at ": " what > "/dev/stderr"; bad = 1 }
    # The item that ends here, its lines joined.
    function check(   names, cpp, notes, first, n, i, name, part) {
      if (item == "") return
      items++
      if (!match(item, /^(`[^`]+` ?)+: /)) complain("an item has names, a colon, C++: " item)
      names = substr(item, 1, RLENGTH - 2)
      cpp = substr(item, RLENGTH + 1)
      if (!match(cpp, /^(not here( yet)?|(`[^`]+` ?)+)(\. |$)/)) {
        complain("neither C++ in backticks nor \"not here\": " cpp)
      }
      notes = RLENGTH > 0 ? substr(cpp, RLENGTH + 1) : ""
      if (RLENGTH > 0) cpp = substr(cpp, 1, RLENGTH)
      sub(/\. $/, "", cpp)
      first = tolower(names)
      sub(/^`(tf|slim)\./, "", first)
      sub(/`.*/, "", first)
      if (first < previous) complain("not sorted: " first " comes before " previous)
      previous = first
      gsub(/`/, "", names)
      n = split(names, name, " ")
      for (i = 1; i <= n; i++) if (seen[name[i]]++) complain(name[i] " is there twice")
      for (i = 1; i <= n; i++) if (!is_name(name[i])) complain(name[i] " is not a name of TensorFlow: see " names_file)
      if (cpp ~ /^not here/ && notes !~ /^Instead /) complain("\"not here\" without \"Instead ...\"")
      n = split(cpp " " notes, part, "`")
      for (i = 2; i <= n; i += 2) if (part[i] !~ /^(tf|slim)\./ && part[i] !~ /^examples\//) print at ":" part[i]
    }
    item != "" && /^  [^ ]/ { item = item " " substr($0, 3); next }
    { check(); item = "" }
    /^## / { previous = "" }
    /^- `(tf|slim)\./ { item = substr($0, 3); at = FNR }
    END {
      check()
      if (items < 200) complain("only " items + 0 " items were found")
      exit bad
    }' "$page"
}

status=0
if grep -nE '^ *# *if' "$program"; then
  echo "$program: an #if, and so perhaps what is not compiled"
  status=1
fi
found=$(pieces) || status=1
paste -d '\t' <(cut -d: -f1 <<<"$found") <(cut -d: -f2- <<<"$found" | tighten) |
  awk -F'\t' -v page="$page" -v program="$program" '
    function is_word(c) { return c ~ /[A-Za-z0-9_]/ }
    # Whether it is in the code, and not in the middle of a word.
    function is_in_code(piece,   from, at, before, after) {
      for (from = 1; at = index(substr(code, from), piece); from = at + 1) {
        at += from - 1
        before = substr(code, at - 1, 1)
        after = substr(code, at + length(piece), 1)
        if (!(at > 1 && is_word(substr(piece, 1, 1)) && is_word(before)) &&
            !(is_word(substr(piece, length(piece))) && is_word(after))) return 1
      }
      return 0
    }
    FNR == NR { code = code $0; next }
    {
      wanted = $2
      if (wanted ~ /^<.*>$/) wanted = "#include" wanted
      if (!is_in_code(wanted)) { print page ":" $1 ": " program " has no " $2; bad = 1 }
    }
    END { exit bad }' "$code" - || status=1
exit $status
