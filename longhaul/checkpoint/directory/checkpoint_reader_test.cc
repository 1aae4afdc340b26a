#include "longhaul/checkpoint/directory/checkpoint_reader.h"

#include <gmock/gmock.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::ThrowsMessage;

class CheckpointReaderTest : public ::testing::Test {
 protected:
  CheckpointReaderTest() {
    BundleWriter writer(files_, prefix_);
    writer.add("v0", Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
    writer.add("v1", Tensor::of<float>({3, 2, 1}, {1, 2, 3, 4, 5, 6}));
    writer.add_slice("parts", {4}, parse_shape_and_slice("4 0,3").second, Tensor::of<int64_t>({1, 2, 3}));
    writer.add_slice("parts", {4}, parse_shape_and_slice("4 3,1").second, Tensor::of<int64_t>({4}));
    writer.finish();
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  std::string prefix_ = directory_.file("m-7");
};

TEST_F(CheckpointReaderTest, SaysWhatThereIs) {  // SA-110
  const CheckpointReader reader(prefix_);
  EXPECT_TRUE(reader.has_tensor("v0"));
  EXPECT_FALSE(reader.has_tensor("v3"));
  EXPECT_THAT(reader.debug_string(), HasSubstr("v0 (DT_FLOAT) [2,3]"));
  EXPECT_THAT(reader.debug_string(), HasSubstr("v1 (DT_FLOAT) [3,2,1]"));
  EXPECT_THAT(reader.get_variable_to_shape_map(),
              ElementsAre(Pair("parts", Shape{4}), Pair("v0", Shape{2, 3}), Pair("v1", Shape{3, 2, 1})));
  EXPECT_THAT(reader.get_variable_to_dtype_map(), ElementsAre(Pair("parts", 9), Pair("v0", 1), Pair("v1", 1)));
  EXPECT_EQ(checkpoint_dtype_name(21), "DT_VARIANT");
  EXPECT_EQ(checkpoint_dtype_name(77), "DT_77");
}

TEST_F(CheckpointReaderTest, GivesTensorsExactlyAndWhole) {  // SA-110
  const CheckpointReader reader(prefix_);
  EXPECT_TRUE(identical(reader.get_tensor("v0"), Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6})));
  EXPECT_TRUE(identical(load_variable(prefix_, "parts"), Tensor::of<int64_t>({1, 2, 3, 4})));
}

TEST_F(CheckpointReaderTest, NamesWhatIsNotThere) {  // SA-110
  EXPECT_THAT([&] { CheckpointReader(prefix_).get_tensor("v3"); },
              ThrowsMessage<NotFoundError>(HasSubstr("v3 not found in checkpoint")));
  EXPECT_THAT([&] { CheckpointReader(directory_.file("none")); },
              ThrowsMessage<NotFoundError>(HasSubstr("Unsuccessful TensorSliceReader")));
  files_.make_directories(directory_.file("empty"));
  EXPECT_THAT([&] { list_variables(directory_.file("empty")); },
              ThrowsMessage<NotFoundError>(HasSubstr("Couldn't find 'checkpoint' file or checkpoints in given")));
}

// An index is a table, as a V1 checkpoint is.
TEST_F(CheckpointReaderTest, AV1CheckpointIsRefused) {  // unlike SA-110
  write_file_atomically(files_, directory_.file("v1"), read_file(files_, prefix_ + ".index"));
  EXPECT_THAT([&] { CheckpointReader(directory_.file("v1")); },
              ThrowsMessage<UnimplementedError>(HasSubstr("V1 checkpoint (a single file)")));
}

TEST_F(CheckpointReaderTest, ADirectoryStandsForItsLatestCheckpoint) {
  std::vector<std::string> names;
  for (const CheckpointVariable& variable : list_variables(directory_.path())) names.push_back(variable.name);
  EXPECT_THAT(names, ElementsAre("parts", "v0", "v1"));
  EXPECT_EQ(load_checkpoint("file://" + directory_.path()).prefix(), prefix_);
}

TEST_F(CheckpointReaderTest, ACheckpointExistsHasATimeAndIsRemoved) {  // CS-10
  EXPECT_TRUE(checkpoint_exists(prefix_));
  EXPECT_FALSE(checkpoint_exists(directory_.file("none")));
  const auto times = get_checkpoint_mtimes({directory_.file("none"), prefix_});
  EXPECT_THAT(times, ElementsAre(files_.modified_at(prefix_ + ".index")));
  remove_checkpoint(prefix_);
  EXPECT_FALSE(checkpoint_exists(prefix_));
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre());
}

TEST_F(CheckpointReaderTest, AnUnusableStateIsNone) {
  EXPECT_EQ(get_checkpoint_state(directory_.path()), std::nullopt);
  write_checkpoint_state(files_, directory_.path(), {.model_checkpoint_path = prefix_});
  EXPECT_EQ(get_checkpoint_state(directory_.path())->model_checkpoint_path, prefix_);
  write_file_atomically(files_, directory_.file("checkpoint"), "");
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  EXPECT_EQ(get_checkpoint_state(directory_.path()), std::nullopt);
  set_log_sink(before);
}

TEST_F(CheckpointReaderTest, RemovingACheckpointNamedLikeTheStateFileLeavesThat) {
  BundleWriter(files_, directory_.file("checkpoint")).finish();
  write_file_atomically(files_, directory_.file("checkpoint"), "the state");
  remove_checkpoint(directory_.file("checkpoint"));
  EXPECT_TRUE(files_.exists(directory_.file("checkpoint")));
  remove_checkpoint(directory_.file("checkpoint"));  // it is no V1 checkpoint either
  EXPECT_TRUE(files_.exists(directory_.file("checkpoint")));
}

TEST_F(CheckpointReaderTest, WithoutADataFileItListsWhatTheIndexHasAndNamesTheFileWhenItsBytesAreWanted) {
  const std::string data = data_path(prefix_, 0, 1);
  files_.remove(data);
  EXPECT_TRUE(CheckpointReader(prefix_).has_tensor("v0"));
  EXPECT_EQ(list_variables(prefix_).size(), 3u);
  EXPECT_EQ(list_variables(directory_.path()).size(), 3u);
  EXPECT_THAT([&] { load_variable(prefix_, "v0"); }, ThrowsMessage<DataLossError>(HasSubstr(data)));
}

TEST_F(CheckpointReaderTest, OneThatIsCalledByItsIndexSaysByWhichNameItIs) {
  EXPECT_THAT([&] { CheckpointReader(prefix_ + ".index"); },
              ThrowsMessage<NotFoundError>(HasSubstr("use the prefix of the checkpoint, " + prefix_)));
}

}  // namespace
}  // namespace longhaul
