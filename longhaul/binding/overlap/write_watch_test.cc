#include "longhaul/binding/overlap/write_watch.h"

#include <ATen/ATen.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

struct WriteWatchTest : ::testing::Test {
  WriteWatchTest() {
    copy->add("large", source, destination);
    copy->close();
    WriteWatch::of_process().add(copy);
  }
  ~WriteWatchTest() override { WriteWatch::of_process().remove(copy); }

  at::Tensor source = at::arange(1 << 19, at::kFloat), destination = at::empty({1 << 19});
  const std::shared_ptr<PendingCopy> copy = std::make_shared<PendingCopy>(PendingCopy::Kind::kProof);
};

TEST_F(WriteWatchTest, HearsOfWritesAndNotOfReads) {
  EXPECT_TRUE(WriteWatch::of_process().works());
  at::Tensor other = source.add(1).mul_(2);
  other.copy_(source);
  at::add_out(other, source, source);
  EXPECT_FALSE(copy->was_written());
  source.view({2, -1})[1][3] = 7;
  EXPECT_TRUE(copy->was_written());
}

TEST_F(WriteWatchTest, HearsOfListsAndOptionalTensors) {
  at::Tensor other = at::zeros({3});
  std::vector<at::Tensor> both = {other, source};
  at::_foreach_add_(both, 1);
  EXPECT_TRUE(copy->was_written());
}

TEST_F(WriteWatchTest, WorksOnAThreadThatHearsNothing) {
  const at::DisableRecordFunctionGuard guard;
  EXPECT_FALSE(WriteWatch::hears_this_thread());
  EXPECT_TRUE(WriteWatch::of_process().works());
  source.add_(1);
  EXPECT_FALSE(copy->was_written());
}

TEST_F(WriteWatchTest, HearsNothingWhenNothingIsPending) {
  WriteWatch::of_process().remove(copy);
  source.add_(1);
  EXPECT_FALSE(copy->was_written());
  WriteWatch::of_process().add(copy);
  source.add_(1);
  EXPECT_TRUE(copy->was_written());
}

}  // namespace
}  // namespace longhaul
