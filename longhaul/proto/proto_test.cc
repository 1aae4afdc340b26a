#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "longhaul/proto/checkpoint_state.pb.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/proto/event.pb.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/proto/queue_runner.pb.h"
#include "longhaul/proto/saver.pb.h"
#include "longhaul/proto/tensor_bundle.pb.h"
#include "longhaul/proto/trackable_object_graph.pb.h"
#include "longhaul/proto/variable.pb.h"
#include "longhaul/testing/needs_fixture.h"

namespace longhaul::proto {
namespace {

namespace fs = std::filesystem;

std::string from_hex(const std::string& hex) {
  std::istringstream in(hex);
  std::string bytes;
  for (std::string byte; in >> byte;) bytes += static_cast<char>(std::stoi(byte, nullptr, 16));
  return bytes;
}

template <typename Message>
Message parsed(const std::string& hex) {
  Message message;
  EXPECT_TRUE(message.ParseFromString(from_hex(hex)));
  return message;
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

// The bytes after a round trip, with maps in a fixed order.
std::string reencoded(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream out(&bytes);
  google::protobuf::io::CodedOutputStream coded(&out);
  coded.SetSerializationDeterministic(true);
  EXPECT_TRUE(message.SerializeToCodedStream(&coded));
  coded.Trim();
  return bytes;
}

// What no field of ours took, in the message or in any message inside it.
int unknown_fields(const google::protobuf::Message& message) {
  const auto* reflection = message.GetReflection();
  int count = reflection->GetUnknownFields(message).field_count();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      count += unknown_fields(reflection->GetMessage(message, field));
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(message, field); ++i)
      count += unknown_fields(reflection->GetRepeatedMessage(message, field, i));
  }
  return count;
}

// Bytes that TensorFlow writes: the header of a bundle with one shard, and a scalar float at offset 4.
TEST(Proto, BundleMessagesHaveTheirGenuineBytes) {
  auto header = parsed<BundleHeaderProto>("08 01 1a 02 08 01");
  EXPECT_EQ(header.num_shards(), 1);
  EXPECT_EQ(header.version().producer(), 1);

  auto entry = parsed<BundleEntryProto>("08 01 12 00 20 04 28 04 35 78 56 34 12");
  EXPECT_EQ(entry.dtype(), DT_FLOAT);
  EXPECT_TRUE(entry.has_shape());
  EXPECT_EQ(entry.offset(), 4);
  EXPECT_EQ(entry.size(), 4);
  EXPECT_EQ(entry.crc32c(), 0x12345678u);
}

TEST(Proto, EventsHaveTheirFieldNumbers) {
  // Worked out by hand from the field numbers; genuine event files are read by the tests of longhaul/events.
  auto version = parsed<Event>("09 00 00 40 9c 46 42 da 41 1a 0d 62 72 61 69 6e 2e 45 76 65 6e 74 3a 32");
  EXPECT_EQ(version.file_version(), "brain.Event:2");

  auto scalar = parsed<Event>("10 0a 2a 0c 0a 0a 0a 03 61 2f 62 15 00 00 c0 3f");
  EXPECT_EQ(scalar.step(), 10);
  ASSERT_EQ(scalar.summary().value_size(), 1);
  EXPECT_EQ(scalar.summary().value(0).tag(), "a/b");
  EXPECT_EQ(scalar.summary().value(0).simple_value(), 1.5f);
}

TEST(Proto, RepeatedNumbersAreUnpackedFromBothForms) {
  EXPECT_EQ(parsed<TensorProto>("3a 02 01 02").int_val_size(), 2);
  EXPECT_EQ(parsed<TensorProto>("38 01 38 02").int_val_size(), 2);
}

TEST(Proto, FieldsThatNobodyKnowsSurviveARoundTrip) {
  std::string bytes = from_hex("0a 01 78 fa 3f 02 68 69");
  NodeDef node;
  ASSERT_TRUE(node.ParseFromString(bytes));
  EXPECT_EQ(node.name(), "x");
  EXPECT_EQ(node.SerializeAsString(), bytes);
}

TEST(Proto, AnExtentWithoutALengthIsToldFromLengthZero) {
  EXPECT_EQ(parsed<TensorSliceProto>("0a 00").extent(0).has_length_case(),
            TensorSliceProto::Extent::HAS_LENGTH_NOT_SET);
  EXPECT_EQ(parsed<TensorSliceProto>("0a 02 10 00").extent(0).has_length_case(), TensorSliceProto::Extent::kLength);
}

TEST(Proto, TheStateFileParsesAsText) {
  CheckpointState state;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "model_checkpoint_path: \"a\\303\\274\"\nall_model_checkpoint_paths: \"b\"\nlast_preserved_timestamp: 1.5\n",
      &state));
  EXPECT_EQ(state.model_checkpoint_path(), "aü");
  EXPECT_EQ(state.last_preserved_timestamp(), 1.5);
}

class GenuineFiles : public testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LONGHAUL_FIXTURES");
    LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
    root_ = folder;
  }
  fs::path root_;
};

TEST_F(GenuineFiles, GraphsAsTextParse) {
  int graphs = 0;
  for (const auto& file : fs::recursive_directory_iterator(root_ / "graphs")) {
    if (file.path().extension() != ".pbtxt") continue;
    GraphDef graph;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(contents(file.path()), &graph)) << file.path();
    EXPECT_GT(graph.node_size(), 0) << file.path();
    ++graphs;
  }
  EXPECT_GE(graphs, 15);
}

TEST_F(GenuineFiles, MetaGraphsParseWithoutLoss) {
  int metas = 0;
  for (const auto& file : fs::recursive_directory_iterator(root_)) {
    if (file.path().extension() != ".meta") continue;
    std::string bytes = contents(file.path());
    MetaGraphDef meta;
    ASSERT_TRUE(meta.ParseFromString(bytes)) << file.path();
    EXPECT_EQ(unknown_fields(meta), 0) << file.path();
    EXPECT_EQ(reencoded(meta).size(), bytes.size()) << file.path();
    EXPECT_GT(meta.graph_def().node_size(), 0);
    EXPECT_FALSE(meta.saver_def().restore_op_name().empty());
    ++metas;
  }
  EXPECT_GE(metas, 4);
}

TEST_F(GenuineFiles, RunMetadataParsesWithoutLoss) {
  std::string bytes = contents(root_ / "graphs/tf-profiler/run_meta");
  RunMetadata metadata;
  ASSERT_TRUE(metadata.ParseFromString(bytes));
  EXPECT_EQ(unknown_fields(metadata), 0);
  EXPECT_GT(metadata.step_stats().dev_stats_size(), 0);
}

}  // namespace
}  // namespace longhaul::proto
