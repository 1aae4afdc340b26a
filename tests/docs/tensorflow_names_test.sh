#!/usr/bin/env bash
# tensorflow_names_test.sh ROOT: tensorflow_names.sh accepts the page as it is, and names each thing that is wrong.
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/docs" "$work/tests/docs"
page=docs/coming_from_tensorflow.md
cp "$root"/tests/docs/{tensorflow_names.cc,tensorflow_v1_names.txt} "$work/tests/docs/"

# expect COMPLAINT SED_SCRIPT: with that change to the page there is that complaint.
expect() {
  sed "$2" "$root/$page" >"$work/$page"
  cmp -s "$root/$page" "$work/$page" && { echo "no such text in the page: $2"; exit 1; }
  if said=$(bash "$root/tests/docs/tensorflow_names.sh" "$work" 2>&1); then echo "accepted: $2"; exit 1; fi
  grep -qF "$1" <<<"$said" || { printf 'not "%s", but:\n%s\n' "$1" "$said"; exit 1; }
}

# expect_of_program COMPLAINT SED_SCRIPT: with that change to the program there is that complaint of the good page.
expect_of_program() {
  local program=tests/docs/tensorflow_names.cc
  cp "$root/$page" "$work/$page"
  sed "$2" "$root/$program" >"$work/$program"
  cmp -s "$root/$program" "$work/$program" && { echo "no such text in the program: $2"; exit 1; }
  if said=$(bash "$root/tests/docs/tensorflow_names.sh" "$work" 2>&1); then echo "accepted: $2"; exit 1; fi
  grep -qF "$1" <<<"$said" || { printf 'not "%s", but:\n%s\n' "$1" "$said"; exit 1; }
}

cp "$root/$page" "$work/$page"
bash "$root/tests/docs/tensorflow_names.sh" "$work"
expect 'has no ops::relu6(root,x)' 's/`ops::relu(root, x)`/`ops::relu6(root, x)`/'
expect 'has no bs(root,x)' 's/`ops::abs(root, x)`/`bs(root, x)`/'
expect 'has no <longhaul/tests.h>' 's,<longhaul/testing.h>,<longhaul/tests.h>,'
expect 'not sorted: add comes before zabs' 's/^- `tf.abs`/- `tf.zabs`/'
expect 'tf.gatherx is not a name of TensorFlow' 's/^- `tf.gather`/- `tf.gatherx`/'
expect 'tf.noises.save is not a name of TensorFlow' 's/`tf.train.Saver.save`/`tf.noises.save`/'
expect 'tf.nn.conv2d is there twice' 's/^- `tf.nn.relu`/- `tf.nn.conv2d`/'
expect '"not here" without "Instead ..."' 's/^\(- `tf.AUTO_REUSE.*\)Instead/\1Use/'
expect 'neither C++ in backticks nor "not here"' 's/^- `tf.no_op`: `/- `tf.no_op`: see `/'
expect 'an item has names, a colon, C++' 's/^- `tf.group`: /- `tf.group` is /'
expect 'neither C++ in backticks nor "not here"' 's/^- `tf.no_op`: `ops::no_op(root)`/&, a note/'
expect 'has no bs(root,x)' '/^- `tf.abs`/s/$/\n  and `bs(root, x)`/'
expect 'items were found' '/^- `tf.t/d'
expect_of_program 'has no ops::relu(root,x)' 's,ops::relu(root\, x)),/* ops::relu(root\, x) **/ x),'
expect_of_program 'has no ops::relu(root,x)' 's,ops::relu(root\, x)),/* *\n ops::relu(root\, x)\n*/ x),'
expect_of_program 'has no ops::relu(root,x)' 's,ops::relu(root\, x)),x);  // ops::relu(root\, x),'
expect_of_program 'an #if, and so perhaps what is not compiled' 's,^  added(ops::max_pool2d,#if 0\n&,'
