#include "longhaul/cluster/shards/taken_value.h"

#include <gmock/gmock.h>

#include "longhaul/checkpoint/bundle/same_contents.h"
#include "longhaul/session/task_snapshots.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor counted(int64_t elements) {
  std::vector<int32_t> numbers(static_cast<size_t>(elements));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int32_t>(i);
  return Tensor::of(numbers);
}

TEST(TakenValue, IsDescribedAsADataFileHasIt) {
  const Tensor value = Tensor::of<std::string>({"a", "bcd"});
  const proto::TakenValue described_value = described("v:0", value, /*with_checksum=*/true);
  EXPECT_EQ(described_value.name(), "v:0");
  EXPECT_EQ(described_value.dtype(), kString);
  EXPECT_EQ(described_value.stored_bytes(), checksum_of(value).size);
  EXPECT_EQ(described_value.crc32c(), checksum_of(value).crc);
  EXPECT_EQ(described("v:0", value, false).stored_bytes(), described_value.stored_bytes());
  EXPECT_EQ(described("n:0", counted(5), false).stored_bytes(), 20u);
}

TEST(TakenValue, PiecesShareItsBytes) {
  const Tensor value = counted(10);
  const Tensor piece = piece_of("v", value, 3, 4);
  EXPECT_EQ(piece.data(), static_cast<const int32_t*>(value.data()) + 3);
  EXPECT_THAT(std::vector<int32_t>(piece.flat<int32_t>().begin(), piece.flat<int32_t>().end()),
              ElementsAre(3, 4, 5, 6));
  const Tensor words = Tensor::of<std::string>({"a", "b", "c"});
  EXPECT_EQ(piece_of("w", words, 2, 1).flat<std::string>()[0], "c");
}

TEST(TakenValue, ElementsThatItDoesNotHaveAreRefused) {
  const Tensor value = counted(10);
  constexpr int64_t kHuge = INT64_MAX;
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 2}, {0, 0}, {0, -1}, {10, 1}, {9, 2}, {kHuge, 1}, {1, kHuge}, {kHuge, kHuge}}) {
    EXPECT_THAT(refusal_of([&, f = first, c = count] { piece_of("v", value, f, c); }), HasSubstr("v has 10 elements"))
        << first << " " << count;
  }
}

TEST(TakenValue, ASampleHasTheFirstAndTheLastElement) {
  EXPECT_TRUE(identical(sample_of(Tensor::scalar(3.f)), Tensor::scalar(3.f)));
  EXPECT_TRUE(identical(sample_of(counted(16)), counted(16)));
  const Tensor sample = sample_of(counted(1000));
  ASSERT_EQ(sample.num_elements(), 16);
  EXPECT_EQ(sample.flat<int32_t>()[0], 0);
  EXPECT_EQ(sample.flat<int32_t>()[15], 999);
  EXPECT_EQ(sample_of(Tensor::of<std::string>({"a"})).num_elements(), 0);
  EXPECT_EQ(sample_of(counted(0)).num_elements(), 0);
}

}  // namespace
}  // namespace longhaul
