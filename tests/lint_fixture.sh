# lint_fixture.sh SOURCE_DIR: tests/NAME_lint_test.sh sources it, and then has its lint, `$lint`, and an empty folder
# for the lint to look at, `$tree`, which goes when the test ends.
set -euo pipefail
lint=$1/tests/$(basename "${0%_test.sh}").sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

failed() {
  echo "FAILED: $1"
  exit 1
}

# passes WHAT: the lint accepts the tree.
passes() {
  local complaint
  complaint=$(bash "$lint" "$tree") || failed "it rejects $1: $complaint"
}
# complains WHAT: the lint rejects the tree, and `$said` is what it says.
complains() {
  ! said=$(bash "$lint" "$tree") || failed "it accepts $1"
}

# accepts WHAT, rejects WHAT BEGIN: the tree; what the lint says is one line, which begins so.
accepts() {
  passes "$1"
}
rejects() {
  complains "$1"
  [[ $said == "$2"* && $said != *$'\n'* ]] || failed "$1: said '$said'"
}
