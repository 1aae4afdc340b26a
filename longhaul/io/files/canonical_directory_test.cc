#include "longhaul/io/files/canonical_directory.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "longhaul/base/error.h"
#include "longhaul/io/files/working_directory_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

TEST(CanonicalDirectory, HasOneNameHoweverItIsSpelled) {
  const testing::TemporaryDirectory home;
  const std::string name = canonical_directory(home.file("a"));
  EXPECT_EQ(name, std::filesystem::canonical(home.path()).string() + "/a");
  for (const char* other : {"a/", "./a", "b/../a", "a//", "a/."}) {
    EXPECT_EQ(canonical_directory(home.file(other)), name) << other;
    EXPECT_EQ(canonical_directory("file://" + home.file(other)), name) << other;
  }
  const WorkingDirectory there(home.path());
  EXPECT_EQ(canonical_directory("a"), name);
}

TEST(CanonicalDirectory, ALinkIsWhatItLeadsTo) {
  const testing::TemporaryDirectory home;
  std::filesystem::create_directory(home.file("a"));
  std::filesystem::create_directory_symlink("a", home.file("link"));
  EXPECT_EQ(canonical_directory(home.file("link")), canonical_directory(home.file("a")));
  EXPECT_EQ(canonical_directory(home.file("link/b")), canonical_directory(home.file("a/b")));
}

TEST(CanonicalDirectory, ALinkThatLeadsInACircleKeepsItsName) {
  const testing::TemporaryDirectory home;
  std::filesystem::create_directory_symlink("circle", home.file("circle"));
  EXPECT_EQ(canonical_directory(home.file("circle/")), home.file("circle"));
}

TEST(AbsoluteDirectory, IsThatOfTheWorkingDirectoryOfTheMoment) {
  const testing::TemporaryDirectory home;
  std::string name;
  {
    const WorkingDirectory there(home.path());
    name = std::filesystem::current_path().string();
    EXPECT_EQ(absolute_directory("a/./b/"), name + "/a/b");
    EXPECT_EQ(absolute_directory("."), name);
    EXPECT_EQ(absolute_directory("../a"), name + "/../a") << "a link may be among them";
  }
  EXPECT_EQ(absolute_directory("/a/./b/"), "/a/./b/");
  EXPECT_EQ(absolute_directory("file:///a"), "/a");
  EXPECT_EQ(absolute_directory(""), "");
}

TEST(CanonicalDirectory, WithoutAWorkingDirectoryARelativeOneIsAnError) {
  testing::TemporaryDirectory home;
  std::filesystem::create_directory(home.file("gone"));
  const WorkingDirectory there(home.file("gone"));
  std::filesystem::remove(home.file("gone"));
  EXPECT_THROW(canonical_directory("a"), NotFoundError);
  EXPECT_NO_THROW(canonical_directory("/a"));
}

}  // namespace
}  // namespace longhaul
