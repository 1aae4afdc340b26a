#include "longhaul/checkpoint/directory/element_stream.h"

#include <gmock/gmock.h>

#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

class ElementStreamTest : public ::testing::Test {
 protected:
  std::string prefix() const { return directory_.file("m-1"); }
  void write(const Tensor& w) {
    BundleWriter writer(files_, prefix());
    writer.add("v", Tensor::scalar<uint8_t>(7));  // so that w begins anywhere
    writer.add("w", w);
    writer.finish();
  }
  std::string streamed() {
    const BundleReader reader(files_, prefix());
    const auto stream = stream_elements(files_, reader, "w");
    std::string all;
    for (auto bytes = stream->next(); !bytes.empty(); bytes = stream->next()) {
      EXPECT_LE(bytes.size(), ElementStream::kPieceBytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes.data()) % 16, 0u);
      all += bytes;
    }
    return all;
  }
  static Tensor large() {
    std::vector<double> values(2 * ElementStream::kPieceBytes / sizeof(double) + 3);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
    return Tensor::of<double>(values);
  }

  FileSystem& files_ = FileSystem::real();
  const testing::TemporaryDirectory directory_;
};

TEST_F(ElementStreamTest, HasAllElementsInOrder) {
  const Tensor tensor = large();
  write(tensor);
  EXPECT_EQ(streamed(), std::string(static_cast<const char*>(tensor.data()), tensor.size_bytes()));
}

TEST_F(ElementStreamTest, AnEmptyTensorHasNone) {
  write(Tensor(kFloat, Shape{0, 3}));
  EXPECT_EQ(streamed(), "");
}

TEST_F(ElementStreamTest, NoticesAFlippedBitAndAFileThatIsTooShort) {
  write(large());
  const std::string path = prefix() + ".data-00000-of-00001";
  const std::string whole = read_file(files_, path);
  for (const size_t at : {whole.size() / 2, whole.size() - 1}) {
    std::string flipped = whole;
    flipped[at] ^= 4;
    write_file_atomically(files_, path, flipped);
    EXPECT_THROW(streamed(), DataLossError);
  }
  write_file_atomically(files_, path, whole.substr(0, whole.size() - 1));
  EXPECT_THROW(streamed(), DataLossError);
}

TEST_F(ElementStreamTest, RefusesStringsAndUnknownNames) {
  write(Tensor::scalar("text"));
  EXPECT_THROW(streamed(), InvalidArgumentError);
  const BundleReader reader(files_, prefix());
  EXPECT_THROW(stream_elements(files_, reader, "none"), NotFoundError);
}

TEST_F(ElementStreamTest, ATensorInMemoryIsOneToo) {
  MemoryStream stream(Tensor::of<int32_t>({1, 2}));
  EXPECT_EQ(stream.next().size(), 8u);
  EXPECT_TRUE(stream.next().empty());
}

}  // namespace
}  // namespace longhaul
