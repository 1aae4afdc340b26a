#!/usr/bin/env bash
# options.sh ROOT [--write]: the lists in docs/options.md are those that the headers' structs give, with the names,
# types, defaults and comments of their members, in their order. A list is announced by <!-- options: STRUCT HEADER -->
# and ends with <!-- end of options -->. With --write, writes them anew.
set -euo pipefail
cd "$1"
page=docs/options.md

# drawn STRUCT HEADER: its list.
drawn() {
  awk -v name="$1" '
    function wrap(first, text,  n, words, i, line) {
      n = split(text, words, " ")
      line = first words[1]
      for (i = 2; i <= n; i++) {
        if (length(line) + 1 + length(words[i]) > 120) { print line; line = (first == "" ? "" : "  ") words[i] }
        else line = line " " words[i]
      }
      print line
    }
    function option(text, meaning,  before, default_value, start, type, member) {
      start = match(text, / = |\{/)
      before = start ? substr(text, 1, start - 1) : text
      default_value = start ? substr(text, start) : ""
      if (default_value ~ /^\{/) default_value = substr(default_value, 2, length(default_value) - 2)
      sub(/^ = /, "", default_value)
      if (default_value == "{}") default_value = ""
      if (default_value ~ /^[0-9]/ && text ~ /^Seconds /) default_value = "Seconds{" default_value "}"
      match(before, /[a-z_0-9]+$/)
      member = substr(before, RSTART)
      type = substr(before, 1, RSTART - 2)
      wrap("- ", "`." member "`, `" type "`" (default_value == "" ? "" : ", `" default_value "`") \
                 (meaning == "" ? "" : ": " meaning))
    }
    function flush() {
      if (member_text != "") option(member_text, meaning)
      member_text = meaning = ""
    }
    !inside && /^\/\/ / { about = about (about == "" ? "" : " ") substr($0, 4); next }
    !inside && /^\/\/$/ { about = about "\n"; next }
    !inside && $0 == "struct " name " {" {
      inside = found = 1
      n = split(about, paragraphs, "\n")
      for (i = 1; i <= n; i++) { sub(/^ /, "", paragraphs[i]); wrap("", paragraphs[i]); print "" }
      next
    }
    !inside { about = ""; next }
    /^};/ { flush(); inside = 0; exit }
    /^   +\/\/ / { sub(/^ *\/\/ /, ""); meaning = meaning " " $0; next }
    /^  \/\/ Longhaul.s own; TensorFlow.s names end here\.$/ {
      flush()
      print "\nThe following are not in TensorFlow:\n"
      next
    }
    /^  \/\/ / { flush(); sub(/^ *\/\/ /, ""); above = above (above == "" ? "" : " ") $0; next }
    /^$/ { flush(); above = ""; next }
    /^  [A-Za-z]/ {
      flush()
      comment = ""
      if (match($0, / *\/\/ /)) { comment = substr($0, RSTART + RLENGTH); $0 = substr($0, 1, RSTART - 1) }
      if (!/;$/) { print FILENAME ":" FNR ": a member on several lines" > "/dev/stderr"; exit 1 }
      member_text = substr($0, 3, length($0) - 3)
      meaning = above (above != "" && comment != "" ? " " : "") comment
      above = ""
    }
    END { if (!found) { print FILENAME ": no struct " name > "/dev/stderr"; exit 1 } }' "$2"
}

status=0
as_drawn() {
  local line struct header skips=0
  while IFS= read -r line; do
    if [ "$line" = "<!-- end of options -->" ]; then skips=0; fi
    if [ $skips = 0 ]; then printf '%s\n' "$line"; fi
    if [[ $line =~ ^'<!-- options: '([A-Za-z]+)' '([a-z_/.]+)' -->'$ ]]; then
      struct=${BASH_REMATCH[1]} header=${BASH_REMATCH[2]}
      printf '\n'
      drawn "$struct" "$header" || return 1
      printf '\n'
      skips=1
    fi
  done <"$page"
}

now=$(as_drawn)
if [ "${2:-}" = --write ]; then
  printf '%s\n' "$now" >"$page"
elif ! diff "$page" <(printf '%s\n' "$now"); then
  echo "$page (<) is not what the headers say (>): run tests/docs/options.sh . --write"
  status=1
fi
exit $status
