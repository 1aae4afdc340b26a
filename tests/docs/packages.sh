#!/usr/bin/env bash
# packages.sh ROOT: README.md's line for apt-get has the packages that the scripts install, and names the others.
set -euo pipefail
cd "$1"
eval "$(sed -n '/^readonly [A-Z]*_PACKAGES=(.*)$/p; /^readonly [A-Z]*_PACKAGES=([^)]*$/,/)$/p' scripts/lib.sh)"
written=$(sed -n '/^sudo apt-get install/,/^```/p' README.md | tr -d '\\`' | sed 's/^sudo apt-get install//' | xargs)
if [ "$written" != "${BUILD_PACKAGES[*]}" ]; then
  printf 'README.md: apt-get install %s\nscripts/lib.sh: %s\n' "$written" "${BUILD_PACKAGES[*]}"
  exit 1
fi
for package in "${DATA_PACKAGES[@]}" "${TEST_PACKAGES[@]}" "${BROWSER_PACKAGES[@]}"; do
  grep -qF "\`$package\`" README.md || { echo "README.md does not name $package"; exit 1; }
done
