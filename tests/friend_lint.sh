#!/usr/bin/env bash
# friend_lint.sh SOURCE_DIR: no class of longhaul/runtime/plan has a friend: a plan is a value, and what builds or runs
# it has only its functions for it (docs/decisions.md). One that cannot do without says why on its line:
# `friend class X;  // friend: REASON`.
set -euo pipefail
cd "$1"

find longhaul/runtime/plan \( -name '*.h' -o -name '*.cc' \) -print | LC_ALL=C sort |
  xargs awk '
    {
      code = $0
      gsub(/"([^"\\]|\\.)*"/, "\"\"", code)
      sub(/\/\/.*/, "", code)
    }
    code ~ /(^|[^A-Za-z0-9_])friend([^A-Za-z0-9_]|$)/ && !/\/\/ friend: ./ {
      printf "%s:%d: a friend without a reason (// friend: ...): %s\n", FILENAME, FNR, $0
      failed = 1
    }
    END { exit failed }'
