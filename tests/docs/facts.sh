#!/usr/bin/env bash
# facts.sh ROOT [--write | --with-list]: holds docs/compatibility.md's list of facts and the tests' tags in step.
#
# A test that pins a fact names it in a trailing comment on the line of its opening brace: `TEST(A, B) {  // SV-51,
# SG-5`; one that pins what we do instead says `unlike SM-13`, and the fact is not held then.
#
# A fact of the list is
#
#   - SV-1 (held): what it says
#     - tests: `Suite.Test`, ...
#     - why: what is different, or "in C++: " and the form that the fact has there
#
# A line that is longer than 118 columns is continued below the first word of its text. The state is one of: held (needs
# a test; no why, but perhaps a form in C++), changed and not applicable (need a why), open (not there yet: needs a why,
# which says what is missing, and has no test). The numbers of a series follow one another; a section may begin with a
# new ten. Where LONGHAUL_FACTS names the file of the facts ("- SV-1 [I] ..."), the list has those and no others;
# --with-list ends with 77, as skipped, where it names none. What TensorFlow itself has tested of servers, as the list
# says ("[T"), must be tested over real connections, too: in longhaul/grpc or tests. With --write the tests are filled
# in from the tags, lines are filled to 118 columns, and an open fact that tests pin becomes held.
set -euo pipefail
cd "$1"
if [ "${2:-}" = --with-list ] && [ ! -r "${LONGHAUL_FACTS:-}" ]; then
  echo "skipped: LONGHAUL_FACTS does not name the file of the facts"
  exit 77
fi
page=docs/compatibility.md
heading='## The facts, one by one'

# How many facts each series has, so that none can get lost.
counts='SV 53 BL 3 CO 15 LT 5 SM 25 SA 59 CS 12 CM 9 QR 13 GS 5 SC 7 MT 7 MS 11 MR 9 MH 6 MF 5 HT 3 HS 1 HL 3'
counts+=' HC 10 HN 4 HU 3 HO 5 CL 11 SE 13 SS 24 IN 12 SY 11 EV 18 SU 5'
counts+=' TB 5 TR 3 CB 28 PR 5 SG 9 DS 10 GP 18 MA 18 WK 13 RZ 11 RC 15'
[ -n "${FACT_COUNTS:-}" ] && counts=$FACT_COUNTS

# Facts about texts and graphs, which no server sees.
unconnected=' SE-1 SY-3 '

# How the last line of a held fact begins, if it has one.
form='in C++: '

# Lines "PLACE TEST FACT" and "PLACE TEST unlike FACT"; "PLACE TEST ? COMMENT" for a comment that names facts in another
# form; "PLACE - ^ COMMENT" for one that stands alone above a test, where nobody would find it.
tags() {
  { find longhaul examples tests benchmarks \( -name '*.h' -o -name '*.cc' \) -print 2>/dev/null || true; } |
    LC_ALL=C sort |
    xargs -r awk '
      /^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(/ {
        head = ""
        where = FILENAME ":" FNR
        open = 1
        if (FNR > 1 && above ~ /^\/\/ (unlike )?[A-Z][A-Z]-[0-9]+([,:].*)?$/) print where, "-", "^", substr(above, 4)
      }
      { above = $0 }
      !open { next }
      { head = head $0 }
      !/\{/ { next }
      {
        open = 0
        name = head
        sub(/^[A-Z_]*\( */, "", name)
        sub(/ *\).*/, "", name)
        sub(/ *, */, ".", name)
        comment = head
        if (!sub(/^.*\{ *\/\/ /, "", comment) || comment !~ /(^|[^A-Z])[A-Z][A-Z]-[0-9]/) next
        n = split(comment, parts, ", ")
        for (i = 1; i <= n; i++) {
          if (parts[i] !~ /^(unlike )?[A-Z][A-Z]-[0-9]+$/) parts[i] = "? " parts[i]
          print where, name, parts[i]
        }
      }'
}

# step MODE < PAGE: "check" prints what is wrong, "write" the page anew.
step() {
  awk -v mode="$1" -v heading="$heading" -v counts="$counts" -v tags_file="$2" -v page="$page" \
    -v form="$form" -v unconnected="$unconnected" -v facts_file="${LONGHAUL_FACTS:-}" '
    function complain(where, what) { if (mode == "check") print where ": " what; failed = 1 }
    function trim(text) { gsub(/^ +| +$/, "", text); return text }
    function add(list, item) { return list == "" ? item : list ", " item }
    function sorted(list,   items, n, i, j, swap, out) {
      n = split(list, items, ", ")
      for (i = 2; i <= n; i++)
        for (j = i; j > 1 && items[j] < items[j - 1]; j--) {
          swap = items[j]
          items[j] = items[j - 1]
          items[j - 1] = swap
        }
      for (i = 1; i <= n; i++) if (i == 1 || items[i] != items[i - 1]) out = add(out, "`" items[i] "`")
      return out
    }
    # A section begins with 1 or a ten, and each number after it is one more.
    function follows(series, number,   last) {
      last = last_number[series]
      last_number[series] = number
      return number == last + 1 || number > last && number % 10 == 0
    }
    BEGIN {
      while (facts_file != "" && (getline line < facts_file) > 0)
        if (match(line, /^- [A-Z][A-Z]-[0-9]+ /)) {
          fact = substr(line, 3, RLENGTH - 3)
          original[fact] = 1
          if (substr(line, RLENGTH + 1) ~ /^\[[^]]*T( |\])/ && fact ~ /^(SE|SS|SY|MA|WK|RC)-/) of_servers[fact] = 1
        }
      while ((getline line < tags_file) > 0) {
        n = split(line, word, " ")
        fact = word[n]
        if (word[3] == "^") {
          sub(/^[^^]*\^ /, "", line)
          complain(word[1], "\"" line "\" stands above the test: a tag follows the test\047s opening brace")
          continue
        }
        if (word[3] == "?") {
          sub(/^[^?]*\? /, "", line)
          complain(word[1], "\"" line "\" is not a tag: write SV-1 or unlike SV-1, with \", \" between them")
          continue
        }
        if (word[3] == "unlike") differs[fact] = 1
        else pinned[fact] = 1
        tests[fact] = add(tests[fact], word[2])
        if (word[1] ~ /^(longhaul\/grpc|tests)\//) connected[fact] = 1
        place[fact] = word[1]
      }
      fact = ""
    }
    # Prints the words, after `first`; further lines begin with as many spaces. A mark of Markdown never begins a line.
    function fill(first, text,   words, n, i, line, indent) {
      indent = first
      gsub(/./, " ", indent)
      n = split(text, words, / +/)
      line = first words[1]
      for (i = 2; i <= n; i++) {
        if (length(line) + 1 + length(words[i]) > 118 && words[i] !~ /^([-+*#>|].*|[0-9]+[.)])$/) {
          print line
          line = indent words[i]
        } else {
          line = line " " words[i]
        }
      }
      print line
    }
    # Takes `label` off the front of a line that continues the fact; or adds the line to what the last label began.
    function take(line) {
      if (sub(/^  - tests: /, "", line)) { part = "tests"; given++; named = line }
      else if (sub(/^  - why: /, "", line)) { part = "why"; given++; why = line }
      else if (index(line, "  - " form) == 1) { part = "why"; given++; why = substr(line, 5) }
      else if (part == "what" && line ~ /^  [^ -]/) what = what " " trim(line)
      else if (part == "tests" && line ~ /^    [^ ]/) named = named " " trim(line)
      else if (part == "why" && line ~ /^    [^ ]/) why = why " " trim(line)
      else complain(page ":" NR, fact " has neither tests nor a why in this line: " line)
    }
    index($0, "## ") == 1 { finish(); in_list = $0 == heading }
    in_list && /^- / {
      finish()
      where = page ":" NR
      if (!match($0, /^- [A-Z][A-Z]-[0-9]+ \([a-z ]+\): */)) {
        complain(where, "a fact begins with its number and its state: " $0)
        next
      }
      head = substr($0, 3, RLENGTH - 2)
      what = trim(substr($0, RLENGTH + 1))
      fact = head
      sub(/ .*/, "", fact)
      state = head
      sub(/^[^(]*\(/, "", state)
      sub(/\):.*/, "", state)
      named = why = ""
      given = 0
      part = "what"
      next
    }
    in_list && fact != "" && /^ / { take($0); next }
    {
      finish()
      if (in_list && /^( |\|)/) complain(page ":" NR, "this line belongs to no fact: " $0)
      if (mode == "write") print
    }
    # Checks or writes the fact whose lines have been read.
    function finish() {
      if (fact == "") return
      check_fact()
      fact = ""
    }
    function check_fact(   wanted) {
      if (given > (named != "") + (why != "")) complain(where, fact " has tests or a why twice, or an empty one")
      if (fact !~ /^[A-Z][A-Z]-[0-9]+$/) complain(where, fact " is not the number of a fact")
      if (fact in row) complain(where, fact " is there twice")
      if (!(fact in row) && !follows(substr(fact, 1, 2), substr(fact, 4) + 0))
        complain(where, fact " does not follow the number before it")
      if (facts_file != "" && !(fact in original)) complain(where, fact " is not a fact of " facts_file)
      row[fact] = 1
      rows[substr(fact, 1, 2)]++
      wanted = sorted(tests[fact])
      if (mode == "write") {
        if (state == "open" && fact in pinned && !(fact in differs)) state = "held"
        fill("- ", fact " (" state "): " what)
        if (wanted != "") fill("  - ", "tests: " wanted)
        if (why != "") fill("  - ", (index(why, form) == 1 ? "" : "why: ") why)
        return
      }
      if (what == "") complain(where, fact " does not say what it is")
      if (state == "held") {
        if (!(fact in pinned)) complain(where, fact " is held, but no test is tagged with it")
        if (fact in differs) complain(where, fact " is held, but tagged as unlike at " place[fact])
        if (why != "" && index(why, form) != 1) complain(where, fact " is held, but differs: " why)
      } else if (state == "changed" || state == "not applicable") {
        if (why == "") complain(where, fact " is " state " without a reason")
        if (state == "not applicable" && wanted != "") {
          complain(where, fact " is not applicable, but tagged at " place[fact])
        }
      } else if (state == "open") {
        if (why == "") complain(where, fact " is open, and it does not say what is missing")
        if (wanted != "") complain(where, fact " is open, but tagged at " place[fact])
      } else {
        complain(where, fact " has an unknown state: \"" state "\"")
      }
      if (fact in of_servers && state != "not applicable" && state != "open" && !(fact in connected) &&
          index(unconnected, " " fact " ") == 0) {
        complain(where, fact " is tested over no real connection: in longhaul/grpc or tests")
      }
      if (named != wanted) {
        complain(where, fact " names other tests than those tagged with it: run tests/docs/facts.sh . --write")
      }
    }
    END {
      finish()
      n = split(counts, count, " ")
      for (i = 1; i < n; i += 2) {
        known[count[i]] = 1
        if (rows[count[i]] != count[i + 1])
          complain(page, count[i] " has " rows[count[i]] + 0 " facts instead of " count[i + 1])
      }
      for (fact in original) if (!(fact in row)) complain(facts_file, fact " is not in " page)
      for (fact in tests) if (substr(fact, 1, 2) in known && !(fact in row)) {
        complain(place[fact], fact " is not in " page)
      }
      exit mode == "check" && failed
    }' "$page"
}

tag_list=$(mktemp)
trap 'rm -f "$tag_list"' EXIT
tags >"$tag_list"
if [ "${2:-}" = --write ]; then
  written=$(step write "$tag_list")
  printf '%s\n' "$written" >"$page"
else
  step check "$tag_list"
fi
