// Tensors that come in pieces, and data files that others have written.
#include "longhaul/checkpoint/bundle/shard_writer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "longhaul/base/error.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The tensor in pieces of so many elements.
TensorInPieces in_pieces(const Tensor& tensor, int64_t most) {
  return {tensor.dtype(), tensor.shape(), [tensor, most, at = int64_t{0}]() mutable {
            const int64_t count = std::min(most, tensor.num_elements() - at);
            const char* const from =
                static_cast<const char*>(tensor.data()) + static_cast<size_t>(at) * dtype_size(tensor.dtype());
            at += count;
            return Tensor::wrap(tensor.dtype(), Shape{count}, from, tensor.owner());
          }};
}

Tensor numbered(const Shape& shape) {
  Tensor tensor(kInt64, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.mutable_flat<int64_t>()[static_cast<size_t>(i)] = i;
  return tensor;
}

class PiecesTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  std::string contents(const std::string& name) const { return read_file(FileSystem::real(), path(name)); }

  testing::TemporaryDirectory directory_;
  const Tensor small_ = numbered({7}), large_ = numbered({300, 101}), part_ = numbered({2, 3}), none_{kFloat, Shape{0}};
  const Tensor words_ = Tensor::of<std::string>({2, 1}, {"a", "bc"});
  const TensorSlice slice_{{{1, 2}, {0, TensorSlice::kFull}}};
};

TEST_F(PiecesTest, GiveTheSameBytesAsWholeTensors) {
  BundleWriter whole(FileSystem::real(), path("whole")), pieces(FileSystem::real(), path("pieces"));
  for (const auto& [name, tensor] :
       std::map<std::string, Tensor>{{"a", small_}, {"b", large_}, {"c", none_}, {"d", small_}}) {
    whole.add(name, tensor);
    pieces.add(name, in_pieces(tensor, 1000));
  }
  whole.add("words", words_);
  pieces.add("words", {kString, words_.shape(), [this] { return words_.reshaped({2}); }});
  whole.add_slice("sliced", {4, 3}, slice_, part_);
  pieces.add_slice("sliced", {4, 3}, slice_, in_pieces(part_, 4));
  whole.add_slice("covered", {2, 3}, TensorSlice::full(2), part_);
  pieces.add_slice("covered", {2, 3}, TensorSlice::full(2), in_pieces(part_, 5));
  whole.finish();
  pieces.finish();
  EXPECT_EQ(whole.data_bytes(), pieces.data_bytes());
  for (const char* ending : {".index", ".data-00000-of-00001"})
    EXPECT_TRUE(contents(std::string("whole") + ending) == contents(std::string("pieces") + ending)) << ending;
  EXPECT_TRUE(identical(BundleReader(FileSystem::real(), path("pieces")).read("words"), words_));
}

TEST_F(PiecesTest, PiecesThatDoNotFitAreRefusedAndNothingIsCommitted) {
  const std::vector<Tensor> wrong{numbered({8}), numbered({0}), Tensor::of<float>({1}), Tensor()};
  for (const Tensor& piece : wrong) {
    BundleWriter writer(FileSystem::real(), path("m"));
    EXPECT_THAT(error_of<InternalError>([&] { writer.add("a", {kInt64, {7}, [&] { return piece; }}); }),
                HasSubstr("got a piece of"));
    EXPECT_THROW(writer.finish(), FailedPreconditionError);
  }
  EXPECT_THAT(FileSystem::real().list(directory_.path()), IsEmpty());
}

TEST_F(PiecesTest, AnErrorOfWhoeverBringsThemEndsTheSave) {
  BundleWriter writer(FileSystem::real(), path("m"));
  const TensorInPieces lost{kInt64, {7}, []() -> Tensor { throw AbortedError("the task is gone"); }};
  EXPECT_THROW(writer.add("a", lost), AbortedError);
  EXPECT_THROW(writer.finish(), FailedPreconditionError);
}

TEST_F(PiecesTest, AWriterWhoseDataIsElsewhereWritesNone) {
  BundleWriter writer(FileSystem::real(), path("m"), {.num_shards = 1, .data_elsewhere = true});
  EXPECT_THAT(error_of<FailedPreconditionError>([&] { writer.add("a", small_); }), HasSubstr("written elsewhere"));
}

TEST_F(PiecesTest, AFileThatWasNotAdoptedIsNotCommitted) {
  BundleWriter writer(FileSystem::real(), path("m"), {.num_shards = 1, .data_elsewhere = true});
  EXPECT_THROW(writer.finish(), FailedPreconditionError);
  EXPECT_FALSE(FileSystem::real().exists(path("m.index")));
}

}  // namespace
}  // namespace longhaul
