#include "longhaul/io/lock/owner_record.h"

#include <gmock/gmock.h>

#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

const OwnerRecord kOwner{.token = "0123456789abcdef0123456789abcdef",
                         .process = {.host = "trainer-3",
                                     .boot_id = "6e0c0d1b-8d0e-4f6e-9a0e-1a2b3c4d5e6f",
                                     .pid_namespace = "pid:[4026531836]",
                                     .pid = 4711,
                                     .start_time = 81234567},
                         .has_flock = true,
                         .limit = 90.5,
                         .since = 1763721934.25,
                         .heartbeat = 1763722264.5};

constexpr const char* kText =
    "longhaul owner 1\n"
    "token 0123456789abcdef0123456789abcdef\n"
    "host trainer-3\n"
    "boot 6e0c0d1b-8d0e-4f6e-9a0e-1a2b3c4d5e6f\n"
    "namespace pid:[4026531836]\n"
    "process 4711\n"
    "started 81234567\n"
    "flock held\n"
    "limit 90.5\n"
    "since 1763721934.250\n"
    "heartbeat 1763722264.500\n";

TEST(OwnerRecord, HasTheTextOfItsFormatPage) {
  EXPECT_EQ(format_owner(kOwner), kText);
  EXPECT_EQ(parse_owner(kText, "p"), kOwner);
}

TEST(OwnerRecord, WhatTheSystemDoesNotTellMayBeMissing) {
  OwnerRecord unknown = kOwner;
  unknown.process = {};
  unknown.has_flock = false;
  EXPECT_EQ(parse_owner(format_owner(unknown), "p"), unknown);
}

TEST(OwnerRecord, AHostsNameWithALineBreakStaysOnItsLine) {
  OwnerRecord strange = kOwner;
  strange.process.host = "a\nb";
  EXPECT_EQ(parse_owner(format_owner(strange), "p").process.host, "a?b");
}

TEST(OwnerRecord, NoPrefixOfOneIsOne) {
  const std::string text = kText;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_THROW(parse_owner(text.substr(0, size), "p"), DataLossError) << size;
  }
  EXPECT_THROW(parse_owner(text + "\n", "p"), DataLossError);
}

TEST(OwnerRecord, ADamagedLineIsNamed) {
  const std::pair<const char*, const char*> damages[] = {
      {"owner 1", "owner 2"},       {"token 0", "token x"},
      {"token 01", "token 1"},      {"host ", "hosts "},
      {"process 4711", "process "}, {"4711", "47x1"},
      {"started 8", "started -8"},  {"held", "kept"},
      {"limit 90.5", "limit 0"},    {"limit 90.5", "limit -1"},
      {"limit 90.5", "limit inf"},  {"limit 90.5", "limit nan"},
      {"limit 90.5\n", ""},         {"since 1763721934", "since nan"},
      {"since 1", "since -1"},      {"heartbeat 1", "heartbeat 1e300"}};
  for (const auto& [from, to] : damages) {
    std::string text = kText;
    text.replace(text.find(from), std::string(from).size(), to);
    try {
      parse_owner(text, "runs/demo/chief.owner");
      ADD_FAILURE() << text;
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr("runs/demo/chief.owner: "));
    }
  }
}

TEST(OwnerRecord, IsWrittenToItsDirectoryAndReadBack) {
  const testing::TemporaryDirectory directory;
  EXPECT_EQ(read_owner(FileSystem::real(), directory.path()), std::nullopt);
  write_owner(FileSystem::real(), directory.path(), kOwner);
  EXPECT_EQ(read_owner(FileSystem::real(), directory.path()), kOwner);
  EXPECT_EQ(read_file(FileSystem::real(), directory.file("chief.owner")), kText);
}

TEST(OwnerRecord, IsDescribedForPeople) {
  EXPECT_EQ(describe(kOwner),
            "host trainer-3, process 4711, since 2025-11-21 10:45:34 UTC, last heartbeat 2025-11-21 10:51:04 UTC");
}

}  // namespace
}  // namespace longhaul
