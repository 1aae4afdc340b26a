#!/usr/bin/env bash
# names_lint_test.sh SOURCE_DIR: shows that names_lint.sh finds the old names of the changelog's newest section, and
# lets pass what has only moved, what prose has too, and what older sections name.
. "$1/tests/lint_fixture.sh"
mkdir -p "$tree"/{docs,longhaul/base,build/old}
cat >"$tree/CHANGELOG.md" <<'PAGE'
# Changelog

| now | before |
| --- | --- |
| `x_y` | `above_all` |

## [Unreleased]

| now | before |
| --- | --- |
| `Options::keep_top` | `keep_good`, `good_is_high` |
| `Owner::attach()` | `ends()` |
| `MaybeOwned<T>` | `Loan<T>` |
| in `chief`, under the same names | `keep_journal`, and `OldOptions::initialize_missing` |
| `chief.saves.max_failed` (`SaveOptions`) | `max_failed`, `lock`, `run_saves(now)`, `OldOptions::verify` |

Text, and another table:

| what | why |
| --- | --- |
| `a_b` | `not_a_name` |

## [0.1]

| now | before |
| --- | --- |
| `c_d` | `older_name` |
PAGE
echo keep_good >"$tree/build/old/file.h"

put() {
  echo "$1" >"$tree/longhaul/base/error.h"
}
accepts() {
  put "$1"
  passes "$1"
}
rejects() {
  put "$1"
  complains "$1"
  [[ $said == "longhaul/base/error.h:1:$1 "* ]] || failed "$1: said '$said'"
}

accepts 'bool keep_top;'
accepts 'keep_good_of_all, i_keep_good'
accepts 'It ends here. A Loan book, under a lock.'
accepts 'options.chief.keep_journal, initialize_missing, NewOptions::initialize_missing'
accepts 'int max_failed;'
accepts 'verify, NewOptions::verify'
accepts 'above_all, a_b, not_a_name, older_name'
rejects 'bool keep_good;'
rejects '// good_is_high'
rejects 'preemption.ends();'
rejects 'Loan<Graph> graph;'
rejects 'OldOptions::initialize_missing'
rejects 'run_saves();'
rejects 'OldOptions::verify'
for words in 'It is beside the file' 'the run goes on.' 'the run goes on without it' 'it lets go of the lock' \
  'a checkpoint passed over' 'the caller is told of it' 'the size is no number' 'Seconds patience{10}' 'mark_torn()'; do
  rejects "// $words"
done
accepts '// besides; it goes on top; there is no indexing; int patience of EarlyStopping'
put ''
echo 'throw Error("which is no index");  // x' >"$tree/longhaul/base/error.cc"
complains "words of a message"
[[ $said == "longhaul/base/error.cc:1:"* ]] || failed "said '$said'"
echo 'next();  // goes on without it' >"$tree/longhaul/base/error.cc"
passes "a comment in a body"
rm "$tree/longhaul/base/error.cc"
for layer in cluster/master grpc/server; do
  mkdir -p "$tree/longhaul/$layer"
  echo 'bool stop(Seconds patience);' >"$tree/longhaul/$layer/worker.h"
  complains "words of $layer"
  rm "$tree/longhaul/$layer/worker.h"
done
echo 'the run goes on' >"$tree/docs/page.md"
complains "words of a page"
echo 'the option `keep_good`' >"$tree/docs/page.md"
complains "an old name in a page"
[[ $said == "docs/page.md:1:"* ]] || failed "said '$said'"
echo "the lint accepts and rejects as it should"
