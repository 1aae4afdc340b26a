#include "longhaul/io/files/directory_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;

// The changes that a watch has told of.
class Changes {
 public:
  void add(const DirectoryChange& change) {
    const MutexLock lock(mutex_);
    all_.push_back(change);
    added_.notify_all();
  }
  // Whether such a change has come, within ten seconds.
  bool has(const std::string& name, bool is_removal) {
    const MutexLock lock(mutex_);
    for (int i = 0; i < 100; ++i) {
      for (const DirectoryChange& change : all_) {
        if (change.name == name && change.is_removal == is_removal) return true;
      }
      added_.wait_for(mutex_, Seconds{0.1});
    }
    return false;
  }

 private:
  Mutex mutex_;
  CondVar added_;
  std::vector<DirectoryChange> all_ GUARDED_BY(mutex_);
};

class DirectoryWatchTest : public ::testing::Test {
 protected:
  void put(const std::string& name) { write_file_atomically(FileSystem::real(), place_.file(name), "text"); }

  testing::TemporaryDirectory place_;
  Changes changes_;  // outlives the watch
};

TEST_F(DirectoryWatchTest, TellsOfFilesThatAreWrittenRenamedAndRemoved) {
  const DirectoryWatch watch(place_.path(), [this](const DirectoryChange& change) { changes_.add(change); });
  ASSERT_TRUE(watch.is_watching());
  put("renamed");
  EXPECT_TRUE(changes_.has("renamed", false));
  std::ofstream(place_.file("written")) << "text";
  EXPECT_TRUE(changes_.has("written", false));
  fs::remove(place_.file("written"));
  EXPECT_TRUE(changes_.has("written", true));
}

TEST_F(DirectoryWatchTest, TellsOfANewDirectory) {
  const DirectoryWatch watch(place_.path(), [this](const auto& change) { changes_.add(change); });
  fs::create_directory(place_.file("run"));
  EXPECT_TRUE(changes_.has("run", false));
}

TEST_F(DirectoryWatchTest, TellsOfWritesToOpenFilesIfAsked) {
  std::ofstream log(place_.file("log"), std::ios::app);
  const DirectoryWatch watch(
      place_.path(), [this](const auto& change) { changes_.add(change); }, DirectoryWatch::Notices::kWrites);
  log << "a line" << std::flush;
  EXPECT_TRUE(changes_.has("log", false));
}

TEST_F(DirectoryWatchTest, EndsWithTheDirectory) {
  fs::create_directory(place_.file("d"));
  const DirectoryWatch watch(place_.file("d"), [this](const DirectoryChange& change) { changes_.add(change); });
  ASSERT_TRUE(watch.is_watching());
  fs::rename(place_.file("d"), place_.file("e"));
  EXPECT_TRUE(changes_.has("", false));
  EXPECT_FALSE(watch.is_watching());
}

TEST_F(DirectoryWatchTest, WhatIsNoDirectoryIsNotWatched) {
  put("file");
  for (const std::string name : {"file", "none"}) {
    const DirectoryWatch watch(place_.file(name), [](const DirectoryChange&) { ADD_FAILURE(); });
    EXPECT_FALSE(watch.is_watching()) << name;
  }
}

}  // namespace
}  // namespace longhaul
