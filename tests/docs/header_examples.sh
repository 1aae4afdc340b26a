#!/usr/bin/env bash
# header_examples.sh ROOT: prints a C++ source with all examples in the comments of the public headers and of those that
# they include, each a function. An example is a block of comment lines indented by three spaces (`//   code`), at least
# one of which ends as code does; lines that begin with "..." are left out. What examples use and do not declare is in
# header_examples.h, and for single headers in header_examples.context: lines "HEADER: code", of which a header may
# have several.
set -euo pipefail
export LC_ALL=C
cd "$1"
context=tests/docs/header_examples.context

# The public headers, and what they include.
declare -A seen=()
mapfile -t next < <(sed -nE 's/^(longhaul\/[^ ]+\.h) .*/\1/p' cmake/public_headers.txt)
while [ ${#next[@]} -gt 0 ]; do
  now=()
  for header in "${next[@]}"; do
    if [ -n "${seen[$header]:-}" ] || [ ! -e "$header" ]; then continue; fi # messages' headers are made by the build
    seen[$header]=1
    now+=("$header")
  done
  next=()
  if [ ${#now[@]} -gt 0 ]; then
    mapfile -t next < <(sed -nE 's/^#include "(longhaul\/[^"]+)".*/\1/p' "${now[@]}")
  fi
done
mapfile -t headers < <(printf '%s\n' "${!seen[@]}" | sort)

while IFS=: read -r header _; do
  if [ -z "${seen[$header]:-}" ]; then
    echo "$context: $header is not a header that users get" >&2
    exit 1
  fi
done <"$context"

printf '#include "tests/docs/header_examples.h"\n'
printf 'namespace longhaul::header_examples {\n'
awk -v context_file="$context" '
  BEGIN {
    while ((getline line < context_file) > 0) {
      colon = index(line, ": ")
      header = substr(line, 1, colon - 1)
      code = substr(line, colon + 2)
      if (header in context) code = context[header] "\n" code
      context[header] = code
    }
  }
  function flush(  i, code, text, is_code) {
    for (i = 1; i <= count; i++) {
      code = lines[i]
      sub(/ *\/\/.*/, "", code)
      if (code ~ /[;{}]$/) is_code = 1
    }
    if (is_code && lines[1] !~ /^( |- |[0-9]+\. )/) {
      printf "auto example_%d() {\n%s\n{\n#line %d \"%s\"\n", ++examples, context[header], first, header
      for (i = 1; i <= count; i++) print lines[i] ~ /^ *\.\.\./ ? "" : lines[i]
      print "}\n}"
    }
    count = 0
  }
  FNR == 1 { flush(); header = FILENAME }
  /^ *\/\/   / {
    if (!count) first = FNR
    text = $0
    sub(/^ *\/\/   /, "", text)
    lines[++count] = text
    next
  }
  { flush() }
  END { flush() }' "${headers[@]}"
printf '}  // namespace longhaul::header_examples\n'
