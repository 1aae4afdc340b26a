#!/usr/bin/env bash
# format.sh SOURCE_DIR: names the C++ files of ours that are not as clang-format 19, which Debian 12 and 13 have, leaves
# them; fails if there are any.
set -euo pipefail
cd "$1"
bad=$(find longhaul examples benchmarks tests \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -n 1 -P "$(nproc)" bash -c 'clang-format-19 --dry-run -Werror "$0" >/dev/null 2>&1 || echo "$0"')
[ -z "$bad" ] || { printf 'run clang-format-19 -i on:\n%s\n' "$bad"; exit 1; }
