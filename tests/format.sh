#!/usr/bin/env bash
# format.sh SOURCE_DIR: names the C++ files of ours that are not as clang-format 19, which Debian 12 and 13 have, leaves
# them; fails if there are any.
set -euo pipefail
cd "$1"
status=0
output=$(find longhaul examples benchmarks tests tools \( -name '*.h' -o -name '*.cc' \) -print0 |
  xargs -0 -n 64 -P "$(nproc)" clang-format-19 --dry-run -Werror --ferror-limit=1 2>&1) || status=$?
[ "$status" = 0 ] || {
  echo "run clang-format-19 -i on:"
  grep -oE '^[^ :]+\.(cc|h):[0-9]+:[0-9]+: error' <<<"$output" | cut -d: -f1 | sort -u || echo "$output"
  exit 1
}
