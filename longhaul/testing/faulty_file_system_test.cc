#include "longhaul/testing/faulty_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/testing/temporary_directory.h"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using Fault = FaultyFileSystem::Fault;

class FaultyFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, std::string_view contents) {
    auto file = files_.create(directory_.file(name));
    file->append(contents);
    file->close();
  }
  std::string contents(const std::string& name) { return read_file(FileSystem::real(), directory_.file(name)); }

  TemporaryDirectory directory_;
  FaultyFileSystem files_;
};

TEST_F(FaultyFiles, OperationsAreRecordedInOrder) {
  write("a", "123");
  files_.rename(directory_.file("a"), directory_.file("b"));
  EXPECT_THAT(files_.operations(), ElementsAre("create a", "append a 3", "close a", "rename a b"));
  EXPECT_EQ(contents("b"), "123");
}

TEST_F(FaultyFiles, OneOperationFails) {
  files_.fail_operation(1);
  EXPECT_THROW(write("a", "1234"), UnavailableError);
  EXPECT_EQ(contents("a"), "12");
  EXPECT_NO_THROW(write("a", "1234"));
}

TEST_F(FaultyFiles, AfterACrashNothingChangesTheDisk) {
  write("a", "1234");
  files_.fail_operation(0, Fault::kForGood);
  EXPECT_THROW(files_.remove(directory_.file("a")), UnavailableError);
  EXPECT_THROW(files_.remove(directory_.file("a")), UnavailableError);
  EXPECT_EQ(contents("a"), "1234");
}

TEST_F(FaultyFiles, AFullDiskTakesWhatFits) {
  files_.fail_writes_after(5);
  write("a", "123");
  EXPECT_THROW(write("b", "123"), ResourceExhaustedError);
  EXPECT_EQ(contents("b"), "12");
  files_.heal();
  EXPECT_NO_THROW(write("b", "123"));
}

}  // namespace
}  // namespace longhaul::testing
