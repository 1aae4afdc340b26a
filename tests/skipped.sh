#!/usr/bin/env bash
# skipped.sh FILE: which tests were skipped, and why: a line with their number, and one for each. FILE is what ctest has
# written with --output-junit; a test that ends as skipped says why in lines "skipped: WHY".
set -euo pipefail

awk '
  function plain(text) {
    gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text); gsub(/&quot;/, "\"", text); gsub(/&apos;/, "\047", text)
    gsub(/&amp;/, "\\&", text)
    return text
  }
  /^\t<testcase / {
    name = $0
    sub(/.* name="/, "", name)
    sub(/".*/, "", name)
    is_skipped = 0
    why = ""
    ++total
  }
  /^\t\t<skipped / { is_skipped = 1 }
  sub(/^(\t\t<system-out>)?skipped: /, "") { why = why (why == "" ? "" : "; ") plain($0) }
  /^\t<\/testcase>/ && is_skipped {
    lines = lines "  " name ": " (why == "" ? "it does not say why" : why) "\n"
    ++skipped
  }
  END { printf "skipped: %s of %d\n%s", skipped ? skipped : "none", total, lines }' "$1"
