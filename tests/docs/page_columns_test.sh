#!/usr/bin/env bash
# page_columns_test.sh SOURCE_DIR: shows that pages.sh refuses a line of 121 columns wherever it stands in a page: in
# the text, in a table, in a block of code, in an indented one; and no line of 120.
set -euo pipefail
pages=$1/tests/docs/pages.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{docs/guide,longhaul}
touch "$tree"/{README,CHANGELOG,CONTRIBUTING,docs/guide}.md

# complaints COLUMNS: what pages.sh says about the columns of a page whose wide lines have so many.
complaints() {
  local cells
  cells=$(printf 'x%.0s' $(seq $(($1 - 8))))
  cat >"$tree/docs/guide/page.md" <<PAGE
1234567 $cells

| thing | text |
| --- | --- |
| a | ${cells}|

\`\`\`text
1234567 $cells
\`\`\`

    123 $cells
PAGE
  sed -i 's/^| a | x/| a | xx/' "$tree/docs/guide/page.md"
  (bash "$pages" "$tree" || true) | grep -F ' columns; ' | cut -d' ' -f1,2
}

diff <(complaints 121) - <<'SAID' || { echo "FAILED: wide lines"; exit 1; }
docs/guide/page.md:1: 121
docs/guide/page.md:5: 121
docs/guide/page.md:8: 121
docs/guide/page.md:11: 121
SAID
[ -z "$(complaints 120)" ] || { echo "FAILED: 120 columns are refused"; exit 1; }
echo "the columns of pages are counted as they should be"
