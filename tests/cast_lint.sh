#!/usr/bin/env bash
# cast_lint.sh SOURCE_DIR: nobody asks by a dynamic_cast what there is a better answer for (docs/decisions.md):
#
# - what a session can do is in Session::capabilities() alone: no cast to a session or to one of the interfaces that
#   longhaul/session/capabilities.h lists;
# - instructions of a plan tell their kind by virtual functions: no dynamic_cast in longhaul/runtime/plan.
#
# Tests and fixtures may cast.
set -euo pipefail
cd "$1"
capabilities=$(sed -nE 's/^  ([A-Za-z]+)\* [a-z_]+ = nullptr;.*/\1/p' longhaul/session/capabilities.h | paste -sd '|')

find longhaul \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.cc' ! -name '*_fixture.*' -print | LC_ALL=C sort |
  xargs awk -v kinds="${capabilities:?has none}|[A-Za-z]*Session" '
    function complain(what) {
      printf "%s:%d: %s: %s\n", FILENAME, FNR, what, $0
      failed = 1
    }
    {
      code = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
      sub(/\/\/.*/, "", code)
    }
    code ~ ("dynamic_(pointer_)?cast<(const )?([a-z]+::)*(" kinds ")[ *&>]") {
      complain("a cast in place of Session::capabilities()")
      next
    }
    FILENAME ~ /^longhaul\/runtime\/plan\// && code ~ /dynamic_(pointer_)?cast</ {
      complain("a dynamic_cast in a plan")
    }
    END { exit failed }'
