#!/usr/bin/env bash
# layer_lint_test.sh SOURCE_DIR: shows that layer_lint.sh accepts a good tree and rejects each kind of bad include.
. "$1/tests/lint_fixture.sh"
mkdir "$tree/cmake"
cat >"$tree/cmake/LonghaulLayer.cmake" <<'TABLE'
set(LONGHAUL_ARROWS_base "")
set(LONGHAUL_ARROWS_io base)
set(LONGHAUL_ARROWS_train/saving base io)
set(LONGHAUL_ARROWS_train/hooks base
    train/saving)
set(LONGHAUL_ARROWS_train/one base)
set(LONGHAUL_ARROWS_train/two base)
set(LONGHAUL_ARROWS_session base train)
set(LONGHAUL_ARROWS_runtime base)
set(LONGHAUL_ARROWS_binding base runtime)
set(LONGHAUL_ARROWS_grpc/transport base)
set(LONGHAUL_ARROWS_testing base)
set(LONGHAUL_APART train/one train/two)
TABLE
cat >"$tree/cmake/public_headers.txt" <<'LIST'
# HEADER COMPONENT
longhaul/longhaul.h longhaul
longhaul/torch.h longhaul
longhaul/io.h io
longhaul/saver.h train
LIST

# put PATH INCLUDE: the tree is that one file.
put() {
  rm -rf "$tree/longhaul"
  mkdir -p "$tree/$(dirname "$1")"
  printf '#pragma once\n\n  #  include %s\n' "$2" >"$tree/$1"
}
accepts() {
  put "$1" "$2"
  passes "$1, which includes $2"
}
rejects() {
  put "$1" "$2"
  complains "$1, which includes $2"
  [[ $said == "$1:3: "* || $said == "$1:1: layer "*" has no arrows"* || $said == "$1:1: layer "*" has rooms"* ||
    $said == "$1:1: stands in no layer"* ]] || failed "$1: said '$said'"
}

accepts longhaul/train/saving/saver.h '"longhaul/io/file.h"'
accepts longhaul/train/saving/saver.cc '"longhaul/train/saving/saver.h"'
accepts longhaul/train/saving/saver.cc '<vector>'
accepts longhaul/io/file_test.cc '"longhaul/train/saving/saver.h"'
accepts longhaul/io/file_fixture.h '"longhaul/train/saving/saver.h"'
accepts longhaul/runtime/plan.h '<ATen/core/Tensor.h>'
accepts longhaul/runtime/plan_test.cc '"longhaul/torch.h"'
accepts longhaul/binding/values.cc '<torch/nn/module.h>'
accepts longhaul/binding/values.cc '"longhaul/runtime/plan.h"'
accepts longhaul/torch.h '<ATen/core/Tensor.h>'
accepts longhaul/testing/fake_device/memory.cc '<c10/core/Allocator.h>'
accepts longhaul/longhaul.h '"longhaul/runtime/plan.h"'
accepts longhaul/longhaul.h '"longhaul/saver.h"'
accepts longhaul/saver.h '"longhaul/train/saving/saver.h"'
accepts longhaul/saver.h '"longhaul/io/file.h"'
accepts longhaul/saver.h '"longhaul/io.h"'
accepts longhaul/io.h '"longhaul/base/error.h"'

rejects longhaul/io.h '"longhaul/train/saving/saver.h"'
rejects longhaul/io.h '"longhaul/saver.h"'
rejects longhaul/saver.h '"longhaul/session/session.h"'
rejects longhaul/saver.h '"longhaul/novel.h"'
rejects longhaul/io/file.cc '"longhaul/io.h"'
rejects longhaul/novel.h '<vector>'
rejects longhaul/base/error.h '"longhaul/io/file.h"'
rejects longhaul/train/saving/saver.cc '"longhaul/runtime/plan.h"'
rejects longhaul/train/saving/saver_test.cc '"longhaul/runtime/plan.h"'
rejects longhaul/train/saving/saver.cc '"longhaul/longhaul.h"'
rejects longhaul/train/saving/saver.cc '"saver.h"'
rejects longhaul/train/saving/saver.cc '<ATen/core/Tensor.h>'
rejects longhaul/testing/clock.cc '<c10/core/Allocator.h>'
rejects longhaul/train/saving/saver_test.cc '<torch/torch.h>'
rejects longhaul/train/saving/saver.h '<c10/util/intrusive_ptr.h>'
rejects longhaul/longhaul.h '<ATen/core/Tensor.h>'
rejects longhaul/runtime/plan.h '<grpcpp/grpcpp.h>'
rejects longhaul/runtime/plan.cc '<grpc/grpc.h>'
rejects longhaul/grpc/transport/line.h '<grpcpp/grpcpp.h>'
accepts longhaul/grpc/transport/line.cc '<grpcpp/grpcpp.h>'
rejects longhaul/runtime/plan.cc '"longhaul/binding/values.h"'
rejects longhaul/runtime/plan_test.cc '"longhaul/binding/values.h"'
accepts longhaul/train/hooks/hook.h '"longhaul/train/saving/saver.h"'
accepts longhaul/train/train_test.cc '"longhaul/train/hooks/hook.h"'
accepts longhaul/session/session.cc '"longhaul/train/hooks/hook.h"'
rejects longhaul/train/saving/saver.cc '"longhaul/train/hooks/hook.h"'
rejects longhaul/train/hooks/hook.cc '"longhaul/io/file.h"'
rejects longhaul/io/file.cc '"longhaul/train/saving/saver.h"'
accepts longhaul/train/one/one_test.cc '"longhaul/train/one/one.h"'
accepts longhaul/train/one/one_test.cc '"longhaul/train/hooks/hook.h"'
accepts longhaul/train/train_test.cc '"longhaul/train/two/two.h"'
rejects longhaul/train/one/one_test.cc '"longhaul/train/two/two.h"'
rejects longhaul/train/two/two_fixture.h '"longhaul/train/one/one_fixture.h"'
put longhaul/train/train_fixture.h '"longhaul/train/two/two.h"'
mkdir -p "$tree/longhaul/train"/{one,two}
echo '#include "longhaul/train/train_fixture.h"' >"$tree/longhaul/train/train_test.cc"
echo '#include "longhaul/train/train_fixture.h"' >"$tree/longhaul/train/two/two_test.cc"
bash "$lint" "$tree" || failed "a fixture of both may include one of two rooms apart"
echo '#include "longhaul/train/one/one_fixture.h"' >"$tree/longhaul/train/one/one_test.cc"
echo '#include "longhaul/train/train_fixture.h"' >"$tree/longhaul/train/one/one_fixture.h"
said=$(bash "$lint" "$tree") && failed "a fixture must not bring along what stays apart"
for file in fixture.h test.cc; do
  grep -qxF "longhaul/train/one/one_$file: train/one and its tests must never include longhaul/train/two/two.h, as \
longhaul/train/train_fixture.h does for it" <<<"$said" || failed "said '$said'"
done
rejects longhaul/train/thing.h '<vector>'
rejects longhaul/train/novel/thing.h '<vector>'
rejects longhaul/novel/thing.h '<vector>'
put longhaul/io/file.h '"longhaul/base/error.h"'
echo 'set(LONGHAUL_ARROWS_novel other)' >>"$tree/cmake/LonghaulLayer.cmake"
said=$(bash "$lint" "$tree") && failed "an arrow must not lead to a line below its own"
[[ $said == *"the arrow from novel to other does not lead to a line above it"* ]] ||
  failed "said '$said'"
echo "the lint accepts and rejects as it should"
