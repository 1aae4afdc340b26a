#include "longhaul/checkpoint/files/v1_checkpoint.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/genuine_test.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::ThrowsMessage;

class V1Checkpoint : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  void put(const std::string& name, const std::string& text) { write_file_atomically(files_, path(name), text); }
  void put_table(const std::string& name) { put(name, testing::counter_bundle().index); }

  FileSystem& files_ = FileSystem::real();
  testing::TemporaryDirectory directory_;
};

TEST_F(V1Checkpoint, IsATableInAFileOfItsName) {
  put_table("m-1");
  EXPECT_TRUE(checkpoint_exists(files_, path("m-1")));
  EXPECT_THAT(v1_files(files_, path("m-1")), ElementsAre(path("m-1")));
  EXPECT_THAT([&] { BundleReader(files_, path("m-1")); },
              ThrowsMessage<UnimplementedError>(HasSubstr("V1 checkpoint (a single file)")));
}

TEST_F(V1Checkpoint, IsOneInShardsByItsPrefixOrItsPattern) {
  for (const char* name : {"m-1-00000-of-00002", "m-1-00001-of-00002"}) put_table(name);
  for (const char* name : {"m-1", "m-1-?\?\?\?\?-of-00002"}) {
    EXPECT_THAT(v1_files(files_, path(name)), ElementsAre(path("m-1-00000-of-00002"), path("m-1-00001-of-00002")));
    EXPECT_THAT([&] { BundleReader(files_, path(name)); },
                ThrowsMessage<UnimplementedError>(HasSubstr("V1 checkpoint (in 2 shards")));
  }
}

TEST_F(V1Checkpoint, OrdinaryFilesAreNone) {
  put("notes.txt", "lessons learned, forty-eight bytes at the very least");
  put("m-2-00000-of-00001", "a text as well, of which nobody knows what it says");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  for (const char* name : {"notes.txt", "m-2", "m-2-?\?\?\?\?-of-00001", "pipe", "none"}) {
    EXPECT_FALSE(checkpoint_exists(files_, path(name))) << name;
    EXPECT_THAT(v1_files(files_, path(name)), IsEmpty()) << name;
    EXPECT_THROW(BundleReader(files_, path(name)), NotFoundError) << name;
    const auto before = files_.list(directory_.path());
    remove_checkpoint(files_, path(name));
    EXPECT_EQ(files_.list(directory_.path()), before) << name;
  }
}

TEST_F(V1Checkpoint, AnIndexIsNone) {
  testing::write_bundle(testing::counter_bundle(), path("m-1"));
  put_table("m-2.index.corrupt");
  put_table("m-3.index.tempstate1.1");
  for (const char* name : {"m-1.index", "m-2.index.corrupt", "m-3.index.tempstate1.1"}) {
    remove_checkpoint(files_, path(name));
    EXPECT_TRUE(files_.exists(path(name))) << name;
  }
}

TEST_F(V1Checkpoint, GoesWithAllItsShards) {
  for (const char* name : {"m-1", "m-2-00000-of-00002", "m-2-00001-of-00002", "m-22-00000-of-00001"}) put_table(name);
  remove_checkpoint(files_, path("m-1"));
  remove_checkpoint(files_, path("m-2"));
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("m-22-00000-of-00001"));
}

TEST_F(V1Checkpoint, WhoCallsACheckpointByOneOfItsFilesIsToldItsPrefix) {
  testing::write_bundle(testing::counter_bundle(), path("m-1"));
  for (const char* ending : {".index", ".meta", ".data-00000-of-00001"}) {
    EXPECT_THAT([&] { BundleReader(files_, path("m-1") + ending); },
                ThrowsMessage<NotFoundError>(HasSubstr("use the prefix of the checkpoint, " + path("m-1"))));
  }
  EXPECT_THAT([&] { BundleReader(files_, path("m-9")); },
              ThrowsMessage<NotFoundError>(Not(::testing::AnyOf(HasSubstr("prefix"), HasSubstr("Not found")))));
}

}  // namespace
}  // namespace longhaul
