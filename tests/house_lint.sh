#!/usr/bin/env bash
# house_lint.sh SOURCE_DIR: holds the measures of the house, whose rooms and arrows cmake/LonghaulLayer.cmake has:
#
# - a room has at most 3,000 lines without its tests, and so has every other folder of a layer (longhaul/host/queues),
#   and what stands in a layer's folder itself;
# - a page of the guide has fewer than 300 lines;
# - each arrow is used: a file of the one, which is no test or fixture, includes a header of the other. What only tests
#   include stands in TEST_DEPENDS.
set -euo pipefail
layer_lint=$(realpath "$(dirname "$0")")/layer_lint.sh
cd "$1"
arrows=cmake/LonghaulLayer.cmake
status=0

complain() {
  echo "$*"
  status=1
}

# Lines "PLACE OTHER...", one for each layer and room.
declared() {
  sed -E '/^set\(LONGHAUL_ARROWS_[^)]*$/ { :more; N; s/\n +/ /; /\)$/!b more }' "$arrows" |
    sed -nE 's/^set\(LONGHAUL_ARROWS_([^ )]+) "?([^")]*)"?\)$/\1 \2/p'
}

# lines_of FIND_ARGUMENT...: in the sources there, without tests.
lines_of() {
  find "$@" \( -name '*.h' -o -name '*.cc' \) ! -name '*_test.*' ! -name '*_fixture.*' -exec cat {} + | wc -l
}

check_rooms() {
  local folder lines
  while read -r folder; do
    lines=$(lines_of "$folder")
    [ "$lines" -le 3000 ] || complain "$folder: $lines lines without its tests; 3000 are the limit of a room or folder"
  done < <(find longhaul -mindepth 2 -maxdepth 2 -type d | LC_ALL=C sort)
  while read -r folder; do
    lines=$(lines_of "$folder" -maxdepth 1)
    [ "$lines" -le 3000 ] || complain "$folder: $lines lines in no folder of it, without its tests; 3000 are the limit"
  done < <(find longhaul -mindepth 1 -maxdepth 1 -type d | LC_ALL=C sort)
}

check_pages() {
  local page lines
  for page in docs/guide/*.md; do
    lines=$(wc -l <"$page")
    [ "$lines" -lt 300 ] || complain "$page: $lines lines; a page of the guide has fewer than 300"
  done
}

check_arrows() {
  local place other
  while read -r place other; do
    complain "$arrows: no file of longhaul/$place uses the arrow to $other; what only tests use stands in TEST_DEPENDS"
  done < <(comm -23 \
    <(declared | awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | LC_ALL=C sort) \
    <(bash "$layer_lint" . --uses | LC_ALL=C sort -u))
}

check_rooms
check_pages
check_arrows
exit $status
