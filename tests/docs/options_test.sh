#!/usr/bin/env bash
# options_test.sh ROOT: options.sh writes a list as the header gives it, and refuses a page with another.
set -euo pipefail
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{docs,longhaul}
cat >"$tree/longhaul/one.h" <<'EOF'
class Other;

// What it is for.
struct OneOptions {
  int number = 0;           // of something, so long that
                            // it has two lines
  std::string name{};

  // Longhaul's own; TensorFlow's names end here.
  Defaulted<Output> op{};   // none
  // How long.
  Seconds wait{60};
};
EOF
printf 'Before.\n<!-- options: OneOptions longhaul/one.h -->\nold\n<!-- end of options -->\nAfter.\n' \
  >"$tree/docs/options.md"
check=$1/tests/docs/options.sh

if bash "$check" "$tree" >/dev/null; then
  echo "a page with another list is accepted"
  exit 1
fi
bash "$check" "$tree" --write
bash "$check" "$tree"
diff - "$tree/docs/options.md" <<'EOF'
Before.
<!-- options: OneOptions longhaul/one.h -->

What it is for.

- `.number`, `int`, `0`: of something, so long that it has two lines
- `.name`, `std::string`

The following are not in TensorFlow:

- `.op`, `Defaulted<Output>`: none
- `.wait`, `Seconds`, `Seconds{60}`: How long.

<!-- end of options -->
After.
EOF

sed -i 's/int number = 0;/int number = 1;/' "$tree/longhaul/one.h"
if bash "$check" "$tree" >/dev/null; then
  echo "another default is not noticed"
  exit 1
fi
sed -i 's/OneOptions/TwoOptions/' "$tree/longhaul/one.h"
if bash "$check" "$tree" >/dev/null 2>&1; then
  echo "a struct that is gone is not noticed"
  exit 1
fi
