#include "longhaul/graph/meta_graph/meta_info.h"

#include <gtest/gtest.h>

#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/testing/memory_growth.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

class MetaInfo : public ::testing::Test {
 protected:
  proto::MetaGraphDef meta_that_says(const std::string& what) {
    proto::MetaGraphDef meta;
    meta.mutable_meta_info_def()->set_meta_graph_version("1");
    meta.mutable_meta_info_def()->mutable_stripped_op_list()->add_op()->set_name("Const");
    meta.mutable_meta_info_def()->mutable_any_info()->set_type_url("type.googleapis.com/x");
    meta.mutable_meta_info_def()->mutable_any_info()->set_value(what);
    meta.mutable_graph_def()->add_node()->set_name("a");
    return meta;
  }

  std::string written(const std::string& bytes) {
    write_file_atomically(files_, path_, bytes);
    return path_;
  }

  std::optional<std::string> read(const std::string& bytes) {
    const auto any = read_any_info(files_, written(bytes));
    return any ? std::optional(any->value()) : std::nullopt;
  }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("m.meta");
};

TEST_F(MetaInfo, IsFoundWhereverItStands) {
  const std::string bytes = meta_that_says("threads 2").SerializeAsString();
  EXPECT_EQ(read(bytes), "threads 2");
  const std::string graph(100 * 1000, 'g');
  proto::MetaGraphDef behind;
  (*behind.mutable_collection_def())["c"].mutable_bytes_list()->add_value(graph);
  EXPECT_EQ(read(behind.SerializeAsString() + bytes), "threads 2");
}

TEST_F(MetaInfo, IsNothingWhereNothingIsSaid) {
  EXPECT_FALSE(read_any_info(files_, directory_.file("none")));
  EXPECT_EQ(read(""), std::nullopt);
  EXPECT_EQ(read(proto::MetaGraphDef().SerializeAsString()), std::nullopt);
  proto::MetaGraphDef meta = meta_that_says("x");
  EXPECT_EQ(read(meta.DebugString()), std::nullopt) << "text";
  meta.mutable_meta_info_def()->clear_any_info();
  EXPECT_EQ(read(meta.SerializeAsString()), std::nullopt);
}

TEST_F(MetaInfo, NoPrefixIsTakenForAnotherFact) {
  const std::string bytes = meta_that_says("threads 2").SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto found = read(bytes.substr(0, size));
    EXPECT_TRUE(!found || *found == "threads 2") << size;
  }
}

TEST_F(MetaInfo, NoLengthIsBelieved) {
  EXPECT_EQ(read("\x0a\xff\xff\xff\xff\x7f"), std::nullopt);
  EXPECT_EQ(read(std::string("\x0a\x06\x1a\xff\xff\xff\x7f\x00", 8)), std::nullopt);
  EXPECT_EQ(read(std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)), std::nullopt);
  EXPECT_EQ(read(meta_that_says(std::string((1 << 16) + 1, 'x')).SerializeAsString()), std::nullopt) << "too long";
}

// 40 million nodes, each of which would take 200 bytes, are skipped; so are as many fields that no meta graph has.
TEST_F(MetaInfo, IsReadWithoutMemoryForTheGraph) {
  const std::string info = meta_that_says("threads 2").SerializeAsString();
  std::string nodes("\x0a\x00", 2);
  while (nodes.size() < 80u * 1000 * 1000) nodes += nodes;
  const std::string head("\x12\x80\x80\x80\x40", 5);  // graph_def, of 2^27 bytes
  nodes.resize(1 << 27);
  written(head + nodes + info);
  EXPECT_EQ(read_any_info(files_, path_)->value(), "threads 2");
  const auto growth = testing::memory_growth([&] { read_any_info(files_, path_); });
  if (!growth) GTEST_SKIP() << "a sanitizer's own memory cannot be told apart";
  EXPECT_LT(*growth, 8u << 20);
}

TEST_F(MetaInfo, AMillionFieldsBeforeItAreEnough) {
  std::string fields;
  for (int i = 0; i < (1 << 20) + 1; ++i) fields += std::string("\x3a\x00", 2);
  EXPECT_EQ(read(fields + meta_that_says("x").SerializeAsString()), std::nullopt);
}

}  // namespace
}  // namespace longhaul
