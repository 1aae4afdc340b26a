#include "longhaul/binding/overlap/pending_copy.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace longhaul {
namespace {

using Kind = PendingCopy::Kind;
using ::testing::HasSubstr;
using ::testing::Optional;

constexpr int64_t kPieces = 16;
constexpr int64_t kFloats = kPieces * static_cast<int64_t>(PendingCopy::kPiece / sizeof(float));

struct Copied {
  explicit Copied(Kind kind = Kind::kLater, uint64_t turn = 0) : copy(kind, turn) {
    copy.add("large", source, destination);
    copy.close();
  }
  void before_write_of(const at::Tensor& part) {
    const auto* begin = static_cast<const std::byte*>(part.data_ptr());
    copy.before_write(begin, begin + part.nbytes());
  }

  at::Tensor source = at::arange(kFloats, at::kFloat), destination = at::full({kFloats}, -1, at::kFloat);
  const at::Tensor before = source.clone();
  PendingCopy copy;
};

TEST(PendingCopy, CopiesPieceByPiece) {
  Copied copied;
  EXPECT_FALSE(copied.copy.wait_until_copied(Seconds{0}));
  int64_t pieces = 0;
  while (copied.copy.copy_next()) ++pieces;
  EXPECT_EQ(pieces, kPieces - static_cast<int64_t>(PendingCopy::kInTurn));
  EXPECT_TRUE(copied.copy.wait_until_copied(Seconds{0}));
  copied.copy.finish();
  EXPECT_TRUE(at::equal(copied.destination, copied.before));
  EXPECT_EQ(copied.copy.problem(), std::nullopt);
}

TEST(PendingCopy, CopiesWhatIsWrittenToBefore) {
  Copied copied;
  for (const int64_t place : {kFloats - 1, int64_t{0}, kFloats / 2}) {
    const at::Tensor part = copied.source.narrow(0, place, 1);
    copied.before_write_of(part);
    part.fill_(-7);
  }
  EXPECT_TRUE(copied.copy.was_written());
  copied.copy.finish();
  EXPECT_TRUE(at::equal(copied.destination, copied.before));
  EXPECT_EQ(copied.copy.problem(), std::nullopt);
}

TEST(PendingCopy, KnowsWhatItHasToCopy) {
  const Copied copied;
  const auto* begin = static_cast<const std::byte*>(copied.source.data_ptr());
  const auto* end = begin + copied.source.nbytes();
  EXPECT_TRUE(copied.copy.covers(begin, begin + 1));
  EXPECT_TRUE(copied.copy.covers(end - 1, end));
  EXPECT_TRUE(copied.copy.covers(begin - 100, end + 100));
  EXPECT_FALSE(copied.copy.covers(begin - 1, begin));
  EXPECT_FALSE(copied.copy.covers(end, end + 1));
  EXPECT_FALSE(copied.copy.covers(copied.destination.data_ptr(),
                                  static_cast<const float*>(copied.destination.data_ptr()) + kFloats));
}

TEST(PendingCopy, OfTensorsThatShareMemoryCopiesEach) {
  const at::Tensor all = at::arange(kFloats, at::kFloat), before = all.clone();
  const std::vector<at::Tensor> sources = {all, all.narrow(0, kFloats / 4, kFloats / 2), all};
  std::vector<at::Tensor> destinations;
  PendingCopy copy(Kind::kLater);
  for (const at::Tensor& source : sources) {
    copy.add("one", source, destinations.emplace_back(at::empty_like(source)));
  }
  copy.close();
  const at::Tensor written = all.narrow(0, kFloats / 2, 3);
  copy.before_write(written.data_ptr(), written.data_ptr<float>() + 3);
  written.fill_(-7);
  copy.finish();
  EXPECT_TRUE(at::equal(destinations[0], before));
  EXPECT_TRUE(at::equal(destinations[1], before.narrow(0, kFloats / 4, kFloats / 2)));
  EXPECT_TRUE(at::equal(destinations[2], before));
}

TEST(PendingCopy, CopiesAtOnceWhatIsSmallOrNotContiguous) {
  const at::Tensor small = at::arange(10, at::kFloat), turned = at::arange(kFloats, at::kFloat).view({1024, -1}).t();
  const at::Tensor small_copy = at::empty_like(small), turned_copy = at::empty(turned.sizes());
  PendingCopy copy(Kind::kLater);
  copy.add("small", small, small_copy);
  copy.add("turned", turned, turned_copy);
  copy.close();
  EXPECT_TRUE(copy.empty());
  EXPECT_TRUE(at::equal(small_copy, small));
  EXPECT_TRUE(at::equal(turned_copy, turned));
}

TEST(PendingCopy, FindsByItsSamplesThatAllWasWritten) {
  for (uint64_t turn = 0; turn < 10; ++turn) {
    Copied copied(Kind::kLater, turn);
    EXPECT_FALSE(copied.copy.samples_changed());
    copied.source.mul_(-1);
    EXPECT_TRUE(copied.copy.samples_changed());
    copied.copy.finish();
    EXPECT_THAT(copied.copy.problem(), Optional(HasSubstr("large was changed in a way that")));
  }
}

TEST(PendingCopy, FindsOneElementByAProof) {
  for (const bool is_announced_later : {false, true}) {
    Copied copied(Kind::kProof);
    EXPECT_TRUE(at::equal(copied.destination, copied.before));
    copied.source[kFloats / 3] = -1;
    if (is_announced_later) copied.before_write_of(copied.source);
    copied.copy.finish();
    EXPECT_THAT(copied.copy.problem(), Optional(HasSubstr("large was changed in a way that")));
  }
}

TEST(PendingCopy, FindsNothingByAProofIfEachWriteWasAnnounced) {
  Copied copied(Kind::kProof);
  copied.before_write_of(copied.source);
  copied.source.mul_(2);
  copied.copy.finish();
  EXPECT_EQ(copied.copy.problem(), std::nullopt);
}

TEST(PendingCopy, FindsOneElementInTurn) {
  int found = 0;
  for (uint64_t turn = 0; turn < 8; ++turn) {
    Copied copied(Kind::kLater, turn);
    copied.source[kFloats / 3] = -1;
    copied.copy.finish();
    found += copied.copy.problem() ? 1 : 0;
  }
  EXPECT_EQ(found, 8 / (kPieces / static_cast<int64_t>(PendingCopy::kInTurn)));
}

TEST(PendingCopy, KeepsTheFirstProblem) {
  Copied copied;
  copied.copy.spoil("the first");
  copied.copy.spoil("the second");
  copied.copy.finish();
  EXPECT_EQ(copied.copy.problem(), "the first");
}

TEST(PendingCopy, IsOfTheMomentWhoeverIsFaster) {
  for (int i = 0; i < 20; ++i) {
    Copied copied;
    std::thread copier([&] {
      while (copied.copy.copy_next()) continue;
    });
    std::thread helper([&] { copied.copy.finish(); });
    for (const at::Tensor& part : copied.source.chunk(i + 1)) {
      copied.before_write_of(part);
      part.fill_(-7);
    }
    copier.join();
    helper.join();
    EXPECT_TRUE(at::equal(copied.destination, copied.before));
    EXPECT_EQ(copied.copy.problem(), std::nullopt);
  }
}

}  // namespace
}  // namespace longhaul
