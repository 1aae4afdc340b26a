#!/usr/bin/env bash
# targets_test.sh SOURCE_DIR: shows that targets.sh accepts targets that are in step with the pages, and refuses others.
set -euo pipefail
check=$1/tests/fuzz/targets.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# put: the good tree.
put() {
  rm -rf "${tree:?}"/*
  mkdir -p "$tree/docs/formats" "$tree/tests/fuzz/corpus/journal" "$tree/tests/fuzz/corpus/bundle"
  cd "$tree"
  printf 'longhaul_fuzz_target(%s DEPENDS io)\n' journal bundle >tests/fuzz/CMakeLists.txt
  touch tests/fuzz/{journal,bundle}_fuzz.cc tests/fuzz/corpus/{journal,bundle}/one docs/formats/journal.md
  cat >docs/fuzzing.md <<'PAGE'
- `journal`: the `run.journal` file
  (docs/formats/journal.md)
- `bundle`: checkpoints, `.index`

Another list:

- `other`: not a target
PAGE
  cat >docs/formats/logdir.md <<'PAGE'
- `model.ckpt-200.index`, `run.journal`: what `is_read`
  - removed by `nobody`
- `chief.lock`: what nobody reads
PAGE
}
rejects() {
  local said
  if said=$(bash "$check" "$tree"); then echo "FAILED: accepts $1"; exit 1; fi
  [ "$said" = "$2" ] || { echo "FAILED: $1: said '$said' and not '$2'"; exit 1; }
}

put
bash "$check" "$tree" || { echo "FAILED: the good tree is refused"; exit 1; }
put && rm tests/fuzz/corpus/journal/one
rejects "an empty corpus" "tests/fuzz/corpus/journal is empty"
put && touch tests/fuzz/owner_fuzz.cc
rejects "a source that is not built" "tests/fuzz/owner_fuzz.cc is not a target in tests/fuzz/CMakeLists.txt"
put && sed -i '/`bundle`/s/`bundle`/`bundles`/' docs/fuzzing.md
rejects "another name" "docs/fuzzing.md has no item for the target bundle
docs/fuzzing.md has an item for bundles, which is not a target"
put && sed -i 's/`run.journal`/`run.journal`, `run.journal.crash`/' docs/formats/logdir.md
rejects "a file that no target reads" "no target in docs/fuzzing.md reads run.journal.crash (docs/formats/logdir.md)"
put && touch docs/formats/owner.md
rejects "a format that no target reads" "no target in docs/fuzzing.md reads what docs/formats/owner.md describes"
echo "the check accepts and rejects as it should"
