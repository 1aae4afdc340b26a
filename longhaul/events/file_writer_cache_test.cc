#include "longhaul/events/file_writer_cache.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "longhaul/events/event_reader.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

class FileWriterCacheTest : public ::testing::Test {
 protected:
  ~FileWriterCacheTest() override { FileWriterCache::clear(); }
  testing::TemporaryDirectory directory_;
};

TEST_F(FileWriterCacheTest, ADirectoryHasOneWriter) {  // EV-16
  const auto writer = FileWriterCache::get(directory_.file("a"));
  EXPECT_EQ(FileWriterCache::get(directory_.file("a")), writer);
  EXPECT_NE(FileWriterCache::get(directory_.file("b")), writer);
}

TEST_F(FileWriterCacheTest, HowThePathIsSpelledMakesNoDifference) {
  const auto writer = FileWriterCache::get(directory_.file("a"));
  EXPECT_EQ(FileWriterCache::get(directory_.file("a/")), writer);
  EXPECT_EQ(FileWriterCache::get(directory_.file("b/../a")), writer);
  EXPECT_EQ(FileWriterCache::get("file://" + directory_.file("a")), writer);
  std::filesystem::create_directory_symlink("a", directory_.file("link"));
  EXPECT_EQ(FileWriterCache::get(directory_.file("link")), writer);
}

TEST_F(FileWriterCacheTest, OnlyAnOpenOneThatSomebodyHoldsIsFound) {
  EXPECT_EQ(FileWriterCache::find(directory_.file("a")), nullptr);
  auto writer = FileWriterCache::get(directory_.file("a"));
  EXPECT_EQ(FileWriterCache::find(directory_.file("a/")), writer);
  EXPECT_EQ(FileWriterCache::find(directory_.file("b")), nullptr);
  writer->close();
  EXPECT_EQ(FileWriterCache::find(directory_.file("a")), nullptr);
  writer = FileWriterCache::get(directory_.file("a"));
  writer.reset();
  EXPECT_EQ(FileWriterCache::find(directory_.file("a")), nullptr);
}

TEST_F(FileWriterCacheTest, WhatWasClearedIsForgotten) {  // EV-16
  const auto writer = FileWriterCache::get(directory_.path());
  FileWriterCache::clear();
  EXPECT_NE(FileWriterCache::get(directory_.path()), writer);
}

TEST_F(FileWriterCacheTest, AClosedWriterIsNotGivenAgain) {
  const auto writer = FileWriterCache::get(directory_.path());
  writer->close();
  EXPECT_FALSE(FileWriterCache::get(directory_.path())->is_closed());
}

TEST_F(FileWriterCacheTest, AWriterThatNobodyHoldsIsClosed) {
  FileWriterCache::get(directory_.path())->add_scalar("a", 1);
  FileWriterCache::get(directory_.path())->add_scalar("b", 2);
  EXPECT_EQ(event_files(directory_.path()).size(), 2u);
}

}  // namespace
}  // namespace longhaul
