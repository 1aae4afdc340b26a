#include "longhaul/testing/planned_faults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "longhaul/testing/temporary_directory.h"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FaultPlan, IsTheTextThatItIsMadeOf) {
  for (const char* text : {"kill@write:17", "torn@write(.data-):3", "enospc@write:40+", "eio@sync:2-5",
                           "slow@any:1+=20", "flip@read:1", "eio@sync_directory:1", "kill@rename(.index):2"}) {
    const auto faults = parse_fault_plan(text);
    ASSERT_EQ(faults.size(), 1u);
    EXPECT_EQ(to_string(faults[0]), text);
  }
  EXPECT_EQ(parse_fault_plan("kill@write:1,eio@open:2").size(), 2u);
}

TEST(FaultPlan, WhatIsNoneSaysWhere) {
  for (const char* text : {"", "kill", "kill@", "kill@write", "kill@write:", "kill@write:0", "kill@write:5-4",
                           "boom@write:1", "kill@lunch:1", "kill@write(a:1", "kill@write:1x", "kill@write:1,",
                           "torn@sync:1", "flip@rename:1", "slow@write:1", "kill@write:1=5", "slow@write:1=999999"}) {
    EXPECT_THROW(parse_fault_plan(text), InvalidArgumentError) << text;
  }
  try {
    parse_fault_plan("eio@lunch:1");
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("\"lunch:1\""), HasSubstr("sync_directory")));
  }
}

// Both kinds of files: ordinary ones, and those that may become large.
class FaultsInFiles : public ::testing::TestWithParam<bool> {
 protected:
  struct Killed {};

  void plan(const std::string& text) {
    files = std::make_unique<PlannedFaults>(parse_fault_plan(text), FileSystem::real(),
                                            FaultActions{.kill = [] { throw Killed(); },
                                                         .sleep = [this](Seconds time) { slept += time; },
                                                         .tell = [this](const std::string& text) { told += text; }});
  }
  std::unique_ptr<WritableFile> create(const std::string& name) {
    return GetParam() ? files->create_large(directory.file(name), {}) : files->create(directory.file(name));
  }
  void write(const std::string& name, std::string_view contents) {
    const auto file = create(name);
    file->append_borrowed(contents);
    file->sync();
    file->close();
  }
  std::string contents(const std::string& name) { return read_file(FileSystem::real(), directory.file(name)); }

  TemporaryDirectory directory;
  std::unique_ptr<PlannedFaults> files;
  Seconds slept{0};
  std::string told;
};

INSTANTIATE_TEST_SUITE_P(OrdinaryAndLarge, FaultsInFiles, ::testing::Bool());

TEST_P(FaultsInFiles, TheNthWriteKills) {
  plan("kill@write:2");
  write("a", "1234");
  EXPECT_THROW(write("b", "1234"), Killed);
  EXPECT_EQ(contents("b"), "");
  EXPECT_THAT(told, HasSubstr("injected fault kill@write:2: " + directory.file("b")));
}

TEST_P(FaultsInFiles, ATornWriteLeavesHalf) {
  plan("torn@write:1");
  EXPECT_THROW(write("a", "1234"), Killed);
  EXPECT_EQ(contents("a"), "12");
}

TEST_P(FaultsInFiles, ATornLargeWriteLeavesHalfToo) {
  plan("torn@write:1");
  EXPECT_THROW(write("a", std::string(4 << 20, 'x')), Killed);
  EXPECT_EQ(contents("a"), std::string(2 << 20, 'x'));
}

TEST_P(FaultsInFiles, AFullDiskTakesHalfAndStaysFull) {
  plan("enospc@write:1-2");
  EXPECT_THROW(write("a", "1234"), ResourceExhaustedError);
  EXPECT_EQ(contents("a"), "12");
  EXPECT_THROW(write("a", "1234"), ResourceExhaustedError);
  EXPECT_NO_THROW(write("a", "1234"));
}

TEST_P(FaultsInFiles, AnErrorOfTheDeviceHasNoEffect) {
  plan("eio@write:1,eio@sync:1");
  EXPECT_THROW(write("a", "1234"), DataLossError);
  EXPECT_EQ(contents("a"), "");
  EXPECT_THROW(write("a", "1234"), DataLossError) << "its sync";
}

TEST_P(FaultsInFiles, AFlippedBitIsNotTold) {
  plan("flip@write:1");
  write("a", "1234");
  EXPECT_EQ(contents("a"), "12#4");
}

TEST_P(FaultsInFiles, ASlowDiskIsOnlySlow) {
  plan("slow@write:2+=30");
  for (const char* name : {"a", "b", "c"}) write(name, "1234");
  EXPECT_DOUBLE_EQ(slept.count(), 0.06);
  EXPECT_EQ(contents("c"), "1234");
}

TEST_P(FaultsInFiles, EachFaultCountsTheOperationsOnItsFiles) {
  plan("eio@write(.index):2,eio@rename(b):1");
  write("a.data", "1");
  write("a.index", "1");
  write("b.data", "1");
  EXPECT_THROW(write("b.index", "1"), DataLossError);
  EXPECT_THROW(files->rename(directory.file("a.data"), directory.file("b")), DataLossError);
  EXPECT_NO_THROW(files->rename(directory.file("a.data"), directory.file("b")));
}

TEST_P(FaultsInFiles, ReadsMeetThemToo) {
  plan("flip@read:1,eio@open:2,eio@read:2");
  write("a", "1234");
  EXPECT_EQ(read_file(*files, directory.file("a")), "12#4");
  EXPECT_THROW(files->open(directory.file("a")), DataLossError);
  EXPECT_THROW(read_file(*files, directory.file("a")), DataLossError);
}

TEST_P(FaultsInFiles, SoDoReadsOfSeveralParts) {
  plan("flip@read:1-2");
  write("a", "12345678");
  char out[4];
  std::string shown;
  files->open(directory.file("a"))
      ->read_batch(std::vector<ReadRequest>{{0, out, 4}, {4, nullptr, 4}}, [&](const ReadPart& part) {
        if (part.request == 1) shown = part.bytes;
      });
  EXPECT_EQ(std::string(out, 4), "12#4");
  EXPECT_EQ(shown, "56'8");
}

TEST_P(FaultsInFiles, EveryOperationIsOne) {
  plan("slow@any:1+=10");
  write("a", "1");  // create, write, sync
  files->link(directory.file("a"), directory.file("b"));
  files->rename(directory.file("a"), directory.file("c"));
  files->remove(directory.file("b"));
  files->sync_directory(directory.path());
  EXPECT_NEAR(slept.count(), 0.07, 1e-9);
  EXPECT_THAT(files->list(directory.path()), ElementsAre("c"));
}

TEST(FaultsFromTheEnvironment, AreThoseOfTheVariable) {
  const auto program = [] {
    const TemporaryDirectory directory;
    file_system_from_environment().create(directory.file("a"))->append("1234");
    std::_Exit(0);
  };
  ::unsetenv("LONGHAUL_FAULTS");
  EXPECT_EXIT(program(), ::testing::ExitedWithCode(0), "");
  ::setenv("LONGHAUL_FAULTS", "kill@write:1", 1);
  EXPECT_EXIT(program(), ::testing::KilledBySignal(SIGKILL), "injected fault kill@write:1");
  ::setenv("LONGHAUL_FAULTS", "nonsense", 1);
  EXPECT_THROW(file_system_from_environment(), InvalidArgumentError);
  ::unsetenv("LONGHAUL_FAULTS");
}

}  // namespace
}  // namespace longhaul::testing
