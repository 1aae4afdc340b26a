#!/usr/bin/env bash
# headers.sh ROOT: the list of docs/headers.md, - `<HEADER>` (`COMPONENT`): contents, and cmake/public_headers.txt have
# the same headers with the same components, 40 at most; what the pages and the programs for users include of ours is
# among them; and the page says how many internal headers are installed, because the public ones include them.
set -euo pipefail
export LC_ALL=C
internal_headers=$(realpath "$(dirname "$0")")/internal_headers.cmake
cd "$1"
page=docs/headers.md list=cmake/public_headers.txt
status=0

listed=$(grep '^longhaul/' $list | sort)
in_page=$(sed -nE 's/^- `<([^>]+)>` \(`([a-z]+)`\): .*/\1 \2/p' $page | sort)
if ! differences=$(diff <(echo "$listed") <(echo "$in_page")); then
  echo "$list (<) and the list of $page (>) are not the same:"
  echo "$differences"
  status=1
fi
if [ "$(wc -l <<<"$listed")" -gt 40 ]; then
  echo "$list: more than 40 headers"
  status=1
fi
while read -r header _; do
  if [ ! -e "${header/%.pb.h/.proto}" ]; then
    echo "$list: $header is not there"
    status=1
  fi
done <<<"$listed"

count=$(cmake -P "$internal_headers" 2>&1)
if ! grep -qE "(^| )$count of them are installed" $page; then
  echo "$page: does not say that $count internal headers are installed: let public ones include less, or write it there"
  status=1
fi

# Pages name headers in <>; programs include them in <> or "".
public=$(cut -d' ' -f1 <<<"$listed")
while IFS=: read -r file line text; do
  header=$(grep -oE 'longhaul/[a-z0-9_/.]+\.h' <<<"$text")
  if ! grep -qxF -- "$header" <<<"$public"; then
    echo "$file:$line: $header is not a public header ($list)"
    status=1
  fi
done < <(
  grep -rnoE '<longhaul/[a-z0-9_/.]+\.h>' README.md docs --include='*.md'
  grep -rnoE '#include [<"]longhaul/[a-z0-9_/.]+\.h[>"]' examples tests/consumer tests/subproject tests/docs \
    --include='*.h' --include='*.cc' --exclude='*_test.*'
)
exit $status
