#include "longhaul/launch/host_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST(HostList, ExpandsBrackets) {
  EXPECT_THAT(expand_host_list("login"), ElementsAre("login"));
  EXPECT_THAT(expand_host_list("a,b.example,c-1"), ElementsAre("a", "b.example", "c-1"));
  EXPECT_THAT(expand_host_list("node[01-03,7],login"), ElementsAre("node01", "node02", "node03", "node7", "login"));
  EXPECT_THAT(expand_host_list("n[8-11]-ib"), ElementsAre("n8-ib", "n9-ib", "n10-ib", "n11-ib"));
  EXPECT_THAT(expand_host_list("n[098-101]"), ElementsAre("n098", "n099", "n100", "n101"));
  EXPECT_THAT(expand_host_list("r[1-2]n[0-1]"), ElementsAre("r1n0", "r1n1", "r2n0", "r2n1"));
  EXPECT_THAT(expand_host_list("[1-2]"), ElementsAre("1", "2"));
}

TEST(HostList, SaysWhereItIsMalformed) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "at byte 0: want a host"},
      {"a,", "at byte 2: want a host"},
      {",a", "at byte 0: want a host"},
      {"a[", "at byte 2: want a number"},
      {"a[]", "at byte 2: want a number"},
      {"a[1", "want ']'"},
      {"a[1-]", "want a number"},
      {"a[1-2", "want ']'"},
      {"a[1,]", "want a number"},
      {"a[1x]", "want ']'"},
      {"a[[1]]", "want a number"},
      {"a]", "a host has letters"},
      {"a b", "a host has letters"},
      {"a/b", "a host has letters"},
      {"a[3-1]", "the range 3-1 is empty"},
      {"a[1,1]", "the host a1 is there twice"},
      {"a,b,a", "the host a is there twice"},
      {"a[1234567890]", "at most 9 digits"},
  };
  for (const auto& [text, why] : cases) {
    EXPECT_THAT(refusal_of([&] { expand_host_list(text); }), HasSubstr(why)) << text;
  }
}

TEST(HostList, TakesNoMemoryForWhatItMerelyClaims) {
  EXPECT_THAT(expand_host_list("n[1-65536]"), SizeIs(kMostLaunchedTasks));
  const std::string name(1000, 'x');
  for (const std::string& text :
       {std::string("n[0-65536]"), std::string("n[1-999999999]"), std::string("n[1-999]m[1-999]"),
        std::string("a[1-65536],b"), "n[1-65536]" + name, name, std::string((1 << 20) + 1, 'a')}) {
    EXPECT_THROW(expand_host_list(text), InvalidArgumentError) << text.substr(0, 40);
  }
}

TEST(TaskCounts, AreRepeated) {
  EXPECT_THAT(expand_task_counts("4"), ElementsAre(4));
  EXPECT_THAT(expand_task_counts("2(x3),1"), ElementsAre(2, 2, 2, 1));
  for (const char* bad :
       {"", "2(x3", "2(3)", "2x3", "a", "2,", "2(x)", "-1", "2(x3)1", "1(x65537)", "65537", "999999999(x65536)"}) {
    EXPECT_THROW(expand_task_counts(bad), InvalidArgumentError) << bad;
  }
}

}  // namespace
}  // namespace longhaul
