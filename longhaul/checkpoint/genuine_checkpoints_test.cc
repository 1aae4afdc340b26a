// Every genuine checkpoint at hand, against what independent readers found in it. The files are not part of the
// repository: LONGHAUL_FIXTURES names the folder that has checkpoints/NAME/ with checkpoints/NAME.expected.json.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/checkpoint/safetensors/safetensors.h"
#include "longhaul/checkpoint/table/wire.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

// What the digests are made of; each string with its length in front, in 8 bytes.
std::string bytes_of(const Tensor& tensor) {
  if (tensor.dtype() != kString) return {static_cast<const char*>(tensor.data()), tensor.size_bytes()};
  std::string bytes;
  for (const std::string& text : tensor.flat<std::string>()) {
    wire::append(bytes, uint64_t{text.size()});
    bytes += text;
  }
  return bytes;
}

std::string sha256(const std::string& bytes) {
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.file("bytes"), std::ios::binary) << bytes;
  FILE* pipe = popen(fmt::format("sha256sum {}", directory.file("bytes")).c_str(), "r");
  char digest[65] = {};
  EXPECT_EQ(std::fread(digest, 1, 64, pipe), 64u);
  pclose(pipe);
  return digest;
}

double number_at(const Tensor& tensor, size_t i) {
  switch (tensor.dtype()) {
    case kFloat: return tensor.flat<float>()[i];
    case kInt32: return tensor.flat<int32_t>()[i];
    case kInt64: return static_cast<double>(tensor.flat<int64_t>()[i]);
    default: ADD_FAILURE() << "a dtype that this test does not know: " << dtype_name(tensor.dtype()); return 0;
  }
}

void expect_tensor(const Tensor& tensor, const json& expected) {
  static const std::map<std::string, DType> kNames = {
      {"DT_FLOAT", kFloat}, {"DT_INT32", kInt32}, {"DT_INT64", kInt64}, {"DT_STRING", kString}};
  EXPECT_EQ(tensor.dtype(), kNames.at(expected["dtype"].get<std::string>()));
  EXPECT_EQ(tensor.shape().dims(), expected["shape"].get<std::vector<int64_t>>());
  EXPECT_EQ(sha256(bytes_of(tensor)), expected["sha256"].get<std::string>());
  if (tensor.dtype() == kString) return;
  for (size_t i = 0; i < expected["values"].size(); ++i) EXPECT_EQ(number_at(tensor, i), expected["values"][i]) << i;
}

class GenuineCheckpoints : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* folder = std::getenv("LONGHAUL_FIXTURES");
    LONGHAUL_NEEDS("genuine_files", folder != nullptr, "LONGHAUL_FIXTURES names no folder of genuine files");
    folder_ = join_path(folder, "checkpoints");
  }

  // Calls visit(prefix, expected.json's part about it) for each of them, and says how many there were.
  template <typename Visit>
  int for_each(Visit visit) {
    int count = 0;
    for (const std::string& name : files_.list(folder_)) {
      if (!name.ends_with(".expected.json")) continue;
      const std::string fixture = join_path(folder_, name.substr(0, name.find(".expected")));
      const json expected = json::parse(read_file(files_, join_path(folder_, name)));
      for (const auto& [prefix, bundle] : expected["bundles"].items()) {
        SCOPED_TRACE(name);
        visit(join_path(fixture, prefix), bundle);
        ++count;
      }
    }
    return count;
  }

  FileSystem& files_ = FileSystem::real();
  std::string folder_;
};

TEST_F(GenuineCheckpoints, ReadAsOtherReadersReadThem) {  // CB-13, CB-22, CB-24, PR-4
  const int count = for_each([&](const std::string& prefix, const json& expected) {
    const BundleReader reader(files_, prefix);
    EXPECT_EQ(reader.num_shards(), expected["num_shards"]);
    EXPECT_EQ(reader.keys().size(), expected["num_variables"].get<size_t>());
    for (const auto& [name, variable] : expected["variables"].items()) {
      SCOPED_TRACE(name);
      expect_tensor(reader.read(name), variable);
    }
    EXPECT_THAT(reader.verify(), ElementsAre());
  });
  EXPECT_GE(count, 14);
}

TEST_F(GenuineCheckpoints, WrittenAgainHoldTheSame) {
  for_each([&](const std::string& prefix, const json&) {
    const testing::TemporaryDirectory directory;
    const BundleReader original(files_, prefix);
    BundleWriter writer(files_, directory.file("copy"));
    for (const std::string& name : original.keys()) writer.add(name, original.read(name));
    writer.finish();
    const BundleReader copy(files_, directory.file("copy"));
    EXPECT_EQ(copy.keys(), original.keys());
    for (const std::string& name : original.keys())
      EXPECT_TRUE(identical(copy.read(name), original.read(name))) << name;
  });
}

TEST_F(GenuineCheckpoints, ComeBackFromSafetensorsAsTheyWere) {
  for_each([&](const std::string& prefix, const json&) {
    const testing::TemporaryDirectory directory;
    const std::string file = directory.file("m.safetensors");
    const auto exported = export_safetensors(prefix, file, {.skip_unsupported = true});
    const auto imported = import_safetensors(file, directory.file("copy"));
    EXPECT_EQ(imported.names, exported.names);
    const BundleReader original(files_, prefix), copy(files_, directory.file("copy"));
    EXPECT_EQ(exported.names.size() + exported.skipped.size(), original.keys().size());
    for (const std::string& name : exported.names) {
      EXPECT_TRUE(identical(copy.read(name), original.read(name))) << name;
    }
    for (const std::string& name : exported.skipped) EXPECT_EQ(original.entry(name).dtype, kString) << name;
  });
}

TEST_F(GenuineCheckpoints, TheirStateFilesNameThem) {
  EXPECT_EQ(latest_checkpoint(files_, join_path(folder_, "keras-gpt2-toy")), folder_ + "/keras-gpt2-toy/model.ckpt");
  EXPECT_EQ(latest_checkpoint(files_, join_path(folder_, "tf-lso_ckpt_tf2.2")), folder_ + "/tf-lso_ckpt_tf2.2/ckpt");
}

TEST_F(GenuineCheckpoints, AV1CheckpointIsRefusedAsSuch) {
  EXPECT_THROW(BundleReader(files_, join_path(folder_, "v1-magenta_rl_tuner/model.ckpt-1994")), UnimplementedError);
}

}  // namespace
}  // namespace longhaul
