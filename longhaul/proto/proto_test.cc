#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string_view>

#include "longhaul/proto/checkpoint_state.pb.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/proto/event.pb.h"
#include "longhaul/proto/master.pb.h"
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

// "session_handle string 1; feed repeated NamedTensorProto 2", as lists of fields have them.
std::string fields_of(const google::protobuf::Descriptor& message) {
  constexpr std::string_view kPackage = "longhaul.proto.";
  std::string text;
  for (int i = 0; i < message.field_count(); ++i) {
    const auto* field = message.field(i);
    std::string type = field->type_name();
    if (field->message_type() != nullptr) type = field->message_type()->full_name().substr(kPackage.size());
    if (field->enum_type() != nullptr) type = field->enum_type()->full_name().substr(kPackage.size());
    text += std::string(i == 0 ? "" : "; ") + field->name() + (field->is_repeated() ? " repeated " : " ") + type + " " +
            std::to_string(field->number());
  }
  return text;
}

// TensorFlow 1.15's master.proto, and what worker.proto has of GetStatus.
const std::map<std::string, std::string> kMasterMessages{
    {"CreateSessionRequest", "graph_def GraphDef 1; config ConfigProto 2; target string 3"},
    {"CreateSessionResponse", "session_handle string 1; graph_version int64 2"},
    {"ExtendSessionRequest", "session_handle string 1; graph_def GraphDef 2; current_graph_version int64 3"},
    {"ExtendSessionResponse", "new_graph_version int64 4"},
    {"RunStepRequest",
     "session_handle string 1; feed repeated NamedTensorProto 2; fetch repeated string 3; target repeated string 4; "
     "options RunOptions 5; partial_run_handle string 6; store_errors_in_response_body bool 7; request_id int64 8"},
    {"RunStepResponse",
     "tensor repeated NamedTensorProto 1; metadata RunMetadata 2; status_code error.Code 3; status_error_message "
     "string 4"},
    {"PartialRunSetupRequest",
     "session_handle string 1; feed repeated string 2; fetch repeated string 3; target repeated string 4; request_id "
     "int64 5"},
    {"PartialRunSetupResponse", "partial_run_handle string 1"},
    {"CloseSessionRequest", "session_handle string 1"},
    {"CloseSessionResponse", ""},
    {"ResetRequest", "container repeated string 1; device_filters repeated string 2"},
    {"ResetResponse", ""},
    {"ListDevicesRequest", "session_handle string 1"},
    {"ListDevicesResponse", "local_device repeated DeviceAttributes 1; remote_device repeated DeviceAttributes 2"},
    {"MakeCallableRequest", "session_handle string 1; options CallableOptions 2; request_id int64 3"},
    {"MakeCallableResponse", "handle int64 1"},
    {"RunCallableRequest", "session_handle string 1; handle int64 2; feed repeated TensorProto 3; request_id int64 4"},
    {"RunCallableResponse", "fetch repeated TensorProto 1; metadata RunMetadata 2"},
    {"ReleaseCallableRequest", "session_handle string 1; handle int64 2"},
    {"ReleaseCallableResponse", ""},
    {"GetStatusRequest", ""},
    {"GetStatusResponse", "device_attributes repeated DeviceAttributes 1"},
};

TEST(Proto, TheMastersMessagesAreTensorFlows) {
  const auto* file = master::RunStepRequest::descriptor()->file();
  EXPECT_EQ(static_cast<size_t>(file->message_type_count()), kMasterMessages.size());
  for (const auto& [name, fields] : kMasterMessages) {
    const auto* message = file->FindMessageTypeByName(name);
    ASSERT_NE(message, nullptr) << name;
    EXPECT_EQ(fields_of(*message), fields) << name;
  }
  EXPECT_EQ(fields_of(*NamedTensorProto::descriptor()), "name string 1; tensor TensorProto 2");
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
