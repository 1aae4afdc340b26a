#include <gmock/gmock.h>

#include <functional>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_merge.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::IsEmpty;

class AtTheFirstLink : public testing::FaultyFileSystem {
 public:
  explicit AtTheFirstLink(std::function<void()> call) : call_(std::move(call)) {}
  void link(const std::string& from, const std::string& to) override {
    FaultyFileSystem::link(from, to);
    if (call_) std::exchange(call_, nullptr)();
  }

 private:
  std::function<void()> call_;
};

// A writer in a directory that this process has locked, and which another one takes over at some moment of a save.
class BundleOwner : public ::testing::Test {
 protected:
  BundleOwner() : log_before_(set_log_sink([](LogLevel, const std::string&) {})) {
    BundleWriter writer(files_, prefix());
    writer.add("w", Tensor::scalar(1.0f));
    writer.finish();
  }
  ~BundleOwner() override { set_log_sink(log_before_); }

  std::string prefix() const { return directory_.file("m-1"); }
  void steal() {
    OwnerRecord owner = lock_.owner();
    owner.token = std::string(32, 'e');
    write_owner(FileSystem::real(), directory_.path(), owner);
    before_ = files_.operations().size();
  }
  std::string part() const { return directory_.file("part"); }
  void write_part() {
    BundleWriter writer(files_, part());
    writer.add("w", Tensor::scalar(3.0f));
    writer.finish();
  }
  // What was renamed, linked or removed since then, temporary files left out.
  std::vector<std::string> done_since() const {
    const std::vector<std::string> all = files_.operations();
    std::vector<std::string> done;
    for (size_t i = before_; i < all.size(); ++i) {
      const bool names = all[i].starts_with("rename ") || all[i].starts_with("link ");
      const bool removes = all[i].starts_with("remove ") && all[i].find(".temp") == std::string::npos;
      if (names || removes) done.push_back(all[i]);
    }
    return done;
  }

  testing::FaultyFileSystem files_;
  testing::TemporaryDirectory directory_;
  const DirectoryLock lock_{directory_.path()};
  size_t before_ = 0;
  LogSink log_before_;
};

TEST_F(BundleOwner, ALostDirectoryIsNotBegunToWriteTo) {
  steal();
  EXPECT_THROW(BundleWriter(files_, directory_.file("m-2")), DirectoryLostError);
  EXPECT_THAT(done_since(), IsEmpty());
}

TEST_F(BundleOwner, NothingIsNamedOrRemovedInADirectoryThatWasLostWhileTheDataWasWritten) {
  {
    BundleWriter writer(files_, prefix());
    writer.add("w", Tensor::scalar(2.0f));
    steal();
    EXPECT_THROW(writer.finish_data(), DirectoryLostError);
  }
  EXPECT_THAT(done_since(), IsEmpty());
  EXPECT_TRUE(checkpoint_exists(files_, prefix()));
}

TEST_F(BundleOwner, NothingIsCommittedOrPutBackInADirectoryThatWasLostBeforeTheCommit) {
  {
    BundleWriter writer(files_, prefix());
    writer.add("w", Tensor::scalar(2.0f));
    writer.finish_data();
    steal();
    EXPECT_THROW(writer.commit(), DirectoryLostError);
  }
  EXPECT_THAT(done_since(), IsEmpty());
  EXPECT_TRUE(checkpoint_exists(files_, prefix()));  // the old one, aside
}

TEST_F(BundleOwner, NothingIsMergedInADirectoryThatWasLost) {
  write_part();
  steal();
  EXPECT_THROW(merge_bundles(files_, {part()}, prefix()), DirectoryLostError);
  EXPECT_THAT(done_since(), IsEmpty());
}

TEST_F(BundleOwner, AMergeIsNotCommittedOrUndoneInADirectoryThatWasLostMeanwhile) {
  write_part();
  AtTheFirstLink files([this] { steal(); });
  EXPECT_THROW(merge_bundles(files, {part()}, directory_.file("m-3")), DirectoryLostError);
  EXPECT_FALSE(checkpoint_exists(files, directory_.file("m-3")));
  EXPECT_TRUE(files.exists(data_path(directory_.file("m-3"), 0, 1)));  // another's, for all that is known
  EXPECT_TRUE(checkpoint_exists(files, part()));
}

TEST_F(BundleOwner, PartsInADirectoryThatWasLostStay) {
  write_part();
  steal();
  const testing::TemporaryDirectory other;
  EXPECT_THROW(merge_bundles(files_, {part()}, other.file("m")), DirectoryLostError);
  EXPECT_TRUE(checkpoint_exists(files_, other.file("m")));
  EXPECT_TRUE(checkpoint_exists(files_, part()));
}

TEST_F(BundleOwner, TheOwnerWritesAsEver) {
  BundleWriter writer(files_, directory_.file("m-2"));
  writer.add("w", Tensor::scalar(2.0f));
  EXPECT_NO_THROW(writer.finish());
  EXPECT_TRUE(checkpoint_exists(files_, directory_.file("m-2")));
}

}  // namespace
}  // namespace longhaul
