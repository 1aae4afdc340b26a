#include "longhaul/console/checkpoints/tensor_source.h"

#include "longhaul/checkpoint/state_dict/state_dict.h"
#include "longhaul/console/checkpoints/checkpoint_fixture.h"

namespace longhaul::console {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TensorSourceTest : public CheckpointsTest {
 protected:
  // More than a piece of a stream.
  static Tensor large() {
    std::vector<float> values(ElementStream::kPieceBytes / sizeof(float) + 5);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    return Tensor::of<float>(values);
  }
  std::string streamed(const TensorSource& source, const std::string& name) {
    std::string all;
    const auto stream = source.stream(*source.find(name));
    for (auto bytes = stream->next(); !bytes.empty(); bytes = stream->next()) all += bytes;
    return all;
  }
};

TEST_F(TensorSourceTest, ReadsCheckpointsAndFilesOfWeightsAlike) {
  const Tensor tensor = large();
  const std::string bytes(static_cast<const char*>(tensor.data()), tensor.size_bytes());
  write("model.ckpt-1", {{"w", tensor}, {"b", Tensor::of<int64_t>({1, 2})}});
  save_state_dict({{"w", tensor}, {"b", Tensor::of<int64_t>({1, 2})}}, path("net.safetensors"));
  save_state_dict({{"w", tensor}, {"b", Tensor::of<int64_t>({1, 2})}}, path("net.pt"));
  for (const std::string name :
       {"", "model.ckpt-1", "model.ckpt-1.index", "model.ckpt-1.data-00000-of-00001", "net.safetensors", "net.pt"}) {
    const auto source = open_tensors(files_, path(name));
    ASSERT_EQ(source->tensors().size(), 2u) << name;
    EXPECT_EQ(source->tensors()[0].name, "b");
    EXPECT_EQ(source->tensors()[1].dtype, "float");
    EXPECT_EQ(source->total_bytes(), tensor.size_bytes() + 16);
    EXPECT_EQ(streamed(*source, "w"), bytes) << name;
    EXPECT_TRUE(identical(source->read(*source->find("b")), Tensor::of<int64_t>({1, 2})));
    EXPECT_TRUE(source->damages({}).empty());
    EXPECT_EQ(source->find("none"), nullptr);
  }
}

TEST_F(TensorSourceTest, AStreamNoticesDamage) {
  write("model.ckpt-1", {{"w", large()}});
  damage("model.ckpt-1.data-00000-of-00001");
  const auto source = open_tensors(files_, path("model.ckpt-1"));
  EXPECT_THROW(streamed(*source, "w"), DataLossError);
  EXPECT_EQ(source->damages({}).size(), 1u);
}

TEST_F(TensorSourceTest, AStreamOfAnEmptyTensorIsEmpty) {
  write("model.ckpt-1", {{"w", Tensor(kFloat, Shape{0, 3})}});
  EXPECT_EQ(streamed(*open_tensors(files_, path("model.ckpt-1")), "w"), "");
}

// A search for the name would make a look at all of them quadratic in their number.
TEST_F(TensorSourceTest, ATensorOfAFileOfWeightsIsReadFromItsPlaceWithoutASearch) {
  for (const std::string file : {"net.safetensors", "net.pt"}) {
    save_state_dict({{"a", Tensor::scalar(1.0f)}, {"b", Tensor::scalar(2.0f)}}, path(file));
    const auto source = open_tensors(files_, path(file));
    StoredTensor called_a = source->tensors()[1];
    called_a.name = "a";
    EXPECT_TRUE(identical(source->read(called_a), Tensor::scalar(2.0f))) << file;
  }
}

TEST_F(TensorSourceTest, RefusesWhatIsNone) {
  EXPECT_THROW(open_tensors(files_, path("none")), NotFoundError);
  EXPECT_THROW(open_tensors(files_, path("")), NotFoundError) << "a directory without checkpoints";
  write_file_atomically(files_, path("text"), "not a file of weights");
  EXPECT_THROW(open_tensors(files_, path("text")), DataLossError);
}

TEST_F(TensorSourceTest, TellsOfTheBytesThatItReads) {
  write("model.ckpt-1", {{"w", large()}});
  uint64_t read = 0;
  open_tensors(files_, path("model.ckpt-1"))->damages([&](uint64_t bytes) { read += bytes; });
  EXPECT_EQ(read, large().size_bytes());
}

}  // namespace
}  // namespace longhaul::console
