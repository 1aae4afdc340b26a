#include "longhaul/binding/overlap/device_copy.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

class DeviceCopyTest : public ::testing::Test {
 protected:
  DeviceCopyTest() {
    fake_device::install();
    fake_device::reset();
  }
  ~DeviceCopyTest() override { fake_device::reset(); }

  // Of so many tensors, at this moment.
  void take(bool is_proof, int tensors = 1, uint64_t turn = 0, int device = 0) {
    copy_ = std::make_unique<DeviceCopy>(is_proof, turn);
    for (int i = 0; i < tensors; ++i) {
      sources_.push_back((at::arange(1000, at::kFloat) + i).to(fake_device::device(device)));
      training(device).synchronize();
      destinations_.push_back(fake_device::pinned_memory({1000}, at::kFloat).fill_(-1));
      ASSERT_TRUE(DeviceCopy::takes(sources_.back(), destinations_.back()));
      copy_->add("t" + std::to_string(i), sources_.back(), destinations_.back());
    }
    copy_->close();
    waits_ = fake_device::counts().host_waits;
  }
  static c10::Stream training(int device = 0) {
    const c10::Device on = fake_device::device(device);
    return c10::impl::VirtualGuardImpl(on.type()).getStream(on);
  }
  // As an operator that libtorch announces.
  void write(const at::Tensor& tensor) {
    const auto* begin = static_cast<const std::byte*>(static_cast<const void*>(tensor.storage().data()));
    copy_->before_write(begin, begin + tensor.storage().nbytes());
    tensor.add_(1);
  }
  void write_unannounced(const at::Tensor& tensor) { tensor.add_(1); }
  void expect_the_moment() {
    for (size_t i = 0; i < destinations_.size(); ++i) {
      const at::Tensor expected = at::arange(1000, at::kFloat) + static_cast<int64_t>(i);
      EXPECT_TRUE(at::equal(destinations_[i], expected)) << i;
    }
  }

  std::vector<at::Tensor> sources_, destinations_;
  std::unique_ptr<DeviceCopy> copy_;
  int64_t waits_ = 0;  // of the host, when the copy began
};

TEST_F(DeviceCopyTest, IsOfTheMomentAndTheHostWaitsAtItsEndAlone) {
  for (const bool starts_first : {false, true}) {
    take(/*is_proof=*/false, 6);
    while (starts_first && copy_->start_next()) continue;
    EXPECT_EQ(copy_->all_started(), starts_first);
    for (const at::Tensor& source : sources_) write(source);
    for (const at::Tensor& source : sources_) write(source);
    EXPECT_EQ(fake_device::counts().host_waits, waits_);
    training().synchronize();  // what was enqueued there has run, the writes among it
    EXPECT_TRUE(copy_->was_written());
    copy_->finish();
    expect_the_moment();
    EXPECT_EQ(copy_->problem(), std::nullopt);
    sources_.clear();
    destinations_.clear();
    fake_device::reset();
  }
}

TEST_F(DeviceCopyTest, WaitsForWhatWasEnqueuedBeforeTheMoment) {
  sources_.push_back(at::zeros({1000}, fake_device::device()));
  destinations_.push_back(fake_device::pinned_memory({1000}, at::kFloat));
  sources_[0].copy_(at::arange(1000, at::kFloat).to(fake_device::device()));
  copy_ = std::make_unique<DeviceCopy>(/*is_proof=*/false, 0);
  copy_->add("t", sources_[0], destinations_[0]);
  copy_->close();
  copy_->finish();
  expect_the_moment();
}

TEST_F(DeviceCopyTest, IsRightIfAnotherStreamWrites) {
  take(/*is_proof=*/false);
  const c10::impl::VirtualGuardImpl guard(fake_device::device().type());
  const c10::Stream other = guard.getStreamFromGlobalPool(fake_device::device());
  {
    const c10::StreamGuard on_other(other);
    write(sources_[0]);
  }
  other.synchronize();
  copy_->finish();
  expect_the_moment();
}

TEST_F(DeviceCopyTest, IsOfTwoDevices) {
  take(/*is_proof=*/false, 1);
  const at::Tensor there = at::full({1000}, 7, at::TensorOptions(fake_device::device(1)).dtype(at::kFloat));
  const at::Tensor here = fake_device::pinned_memory({1000}, at::kFloat);
  DeviceCopy both(/*is_proof=*/false, 0);
  both.add("first", sources_[0], destinations_[0]);
  both.add("second", there, here);
  both.close();
  there.fill_(8);  // not announced
  both.finish();
  EXPECT_THAT(both.problem(), Optional(HasSubstr("second was changed")));
  EXPECT_TRUE(both.covers(there.storage().data(), static_cast<const std::byte*>(there.storage().data()) + 1));
  EXPECT_FALSE(both.covers(here.storage().data(), static_cast<const std::byte*>(here.storage().data()) + 1));
}

TEST_F(DeviceCopyTest, AWriteThatNobodyAnnouncesIsFoundInTurn) {
  for (const uint64_t turn : {0, 1}) {
    take(/*is_proof=*/false, 2 * DeviceCopy::kInTurn, turn);
    write_unannounced(sources_[DeviceCopy::kInTurn]);
    copy_->finish();
    EXPECT_EQ(copy_->problem().has_value(), turn == 1);
    sources_.clear();
    destinations_.clear();
  }
}

TEST_F(DeviceCopyTest, AProofFindsAnyWriteThatNobodyAnnounces) {
  take(/*is_proof=*/true, 9);
  expect_the_moment();  // copied at once
  EXPECT_FALSE(copy_->was_changed());
  write(sources_[0]);
  EXPECT_FALSE(copy_->was_changed()) << "it was announced";
  write_unannounced(sources_[8]);
  EXPECT_TRUE(copy_->was_changed());
  copy_->finish();
  EXPECT_THAT(copy_->problem(), Optional(HasSubstr("t8 was changed")));
}

TEST_F(DeviceCopyTest, AProofOfAnnouncedWritesIsGood) {
  take(/*is_proof=*/true, 9);
  for (const at::Tensor& source : sources_) write(source);
  copy_->finish();
  EXPECT_EQ(copy_->problem(), std::nullopt);
}

TEST_F(DeviceCopyTest, ALostDeviceIsAProblem) {
  take(/*is_proof=*/false);
  fake_device::lose("an illegal memory access was encountered");
  copy_->finish();
  EXPECT_THAT(copy_->problem(), Optional(HasSubstr("an illegal memory access")));
}

TEST_F(DeviceCopyTest, IsRightWithMemoryThatIsNotPinned) {
  sources_.push_back(at::arange(1000, at::kFloat).to(fake_device::device()));
  destinations_.push_back(at::empty({1000}));
  copy_ = std::make_unique<DeviceCopy>(/*is_proof=*/false, 0);
  copy_->add("t", sources_[0], destinations_[0]);
  copy_->close();
  write(sources_[0]);
  training().synchronize();
  copy_->finish();
  expect_the_moment();
}

TEST_F(DeviceCopyTest, TakesWhatIsOnADeviceWithStreams) {
  const at::Tensor on_device = at::ones({3}, fake_device::device()), on_host = at::ones({3});
  EXPECT_TRUE(DeviceCopy::takes(on_device, on_host));
  EXPECT_FALSE(DeviceCopy::takes(on_host, on_host));
  EXPECT_FALSE(DeviceCopy::takes(on_device, on_host.to(at::kDouble)));
  EXPECT_FALSE(DeviceCopy::takes(at::ones({3}, at::kMeta), on_host));
  EXPECT_FALSE(DeviceCopy::takes(on_device.narrow(0, 0, 0), on_host.narrow(0, 0, 0)));
}

}  // namespace
}  // namespace longhaul
