#include "longhaul/io/files/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::longhaul::testing::FaultyFileSystem;
using ::longhaul::testing::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Files : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  std::string contents(const std::string& name) { return read_file(files_, path(name)); }
  void put(const std::string& name, std::string_view contents) { write_file_atomically(files_, path(name), contents); }

  TemporaryDirectory directory_;
  FileSystem& files_ = FileSystem::real();
};

// The message of what `call` throws, which must be an `Expected`.
template <typename Expected, typename Call>
std::string message_of_error(Call call) {
  try {
    call();
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "not thrown";
  return "";
}

TEST_F(Files, WhatIsAppendedIsRead) {
  std::string expected;
  auto file = files_.create(path("f"));
  for (size_t size : {0, 1, 100, 127 * 1024, 5000, 128 * 1024, 1, 300 * 1024, 7}) {
    std::string part(size, static_cast<char>('a' + size % 26));
    file->append(part);
    expected += part;
  }
  file->sync();
  EXPECT_TRUE(contents("f") == expected);
  file->append("!");
  file->flush();
  EXPECT_TRUE(contents("f") == expected + "!");
  file->close();
  file->close();
}

TEST_F(Files, ADestroyedFileKeepsWhatWasAppended) {
  files_.create(path("f"))->append("text");
  EXPECT_EQ(contents("f"), "text");
}

TEST_F(Files, NothingIsAppendedAfterClose) {
  auto file = files_.create(path("f"));
  file->close();
  EXPECT_THAT(message_of_error<FailedPreconditionError>([&] { file->append("x"); }), HasSubstr(path("f")));
}

TEST_F(Files, ReadingEndsWithTheFile) {
  put("f", "0123456789");
  auto file = files_.open(path("f"));
  char buffer[8];
  EXPECT_EQ(file->size(), 10u);
  EXPECT_EQ(file->read(0, buffer, 8), 8u);
  EXPECT_EQ(file->read(8, buffer, 8), 2u);
  EXPECT_EQ(file->read(100, buffer, 8), 0u);
}

TEST_F(Files, AFullDiskIsAnErrorThatStays) {
  auto file = files_.create("/dev/full");
  file->append("x");
  EXPECT_THAT(message_of_error<ResourceExhaustedError>([&] { file->flush(); }), HasSubstr("write /dev/full: "));
  EXPECT_THAT(message_of_error<FailedPreconditionError>([&] { file->append("y"); }), HasSubstr("earlier write failed"));
  EXPECT_THROW(file->close(), FailedPreconditionError);
  EXPECT_NO_THROW(file->close());
}

TEST_F(Files, ErrorsNameTheOperationAndThePath) {
  const std::string missing = path("missing/f");
  EXPECT_EQ(message_of_error<NotFoundError>([&] { files_.open(missing); }),
            "open " + missing + ": No such file or directory");
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.create(missing); }), HasSubstr("create " + missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.list(missing); }), HasSubstr("list " + missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.remove(missing); }), HasSubstr("remove " + missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.rename(missing, "to"); }), HasSubstr("rename " + missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.link(missing, "to"); }), HasSubstr("link " + missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.modified_at(missing); }), HasSubstr(missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.free_bytes(missing); }), HasSubstr(missing));
  EXPECT_THAT(message_of_error<NotFoundError>([&] { files_.sync_directory(missing); }), HasSubstr(missing));
  EXPECT_THAT(message_of_error<Error>([&] { files_.open(directory_.path()); }), HasSubstr("open " + directory_.path()));
  put("f", "");
  EXPECT_THAT(message_of_error<Error>([&] { files_.make_directories(path("f/g")); }), HasSubstr(path("f/g")));
}

TEST_F(Files, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(message_of_error<InvalidArgumentError>([&] { files_.open(path("pipe")); }),
              HasSubstr("open " + path("pipe") + ": it is not a regular file"));
  EXPECT_THROW(contents("pipe"), InvalidArgumentError);
  EXPECT_THAT(message_of_error<Error>([&] { files_.create(path("pipe")); }), HasSubstr("create " + path("pipe")));
  const int other_end = ::open(path("pipe").c_str(), O_RDWR | O_NONBLOCK);
  EXPECT_THROW(files_.create(path("pipe")), InvalidArgumentError);
  EXPECT_THROW(files_.create_large(path("pipe"), {}), InvalidArgumentError);
  ::close(other_end);
}

TEST_F(Files, WhatIsOpenedWaitsForItsBytes) {
  put("f", "text");
  for (const char* name : {"f", "g"}) {
    const auto reader = *name == 'f' ? files_.open(path("f")) : nullptr;
    const auto writer = *name == 'g' ? files_.create(path("g")) : nullptr;
    for (const std::string& fd : files_.list("/proc/self/fd")) {
      std::error_code error;
      if (std::filesystem::read_symlink("/proc/self/fd/" + fd, error) != path(name)) continue;
      EXPECT_EQ(::fcntl(std::stoi(fd), F_GETFL) & O_NONBLOCK, 0);
    }
  }
}

// As the superuser one may look everywhere: then it is another user who looks.
TEST_F(Files, WhatMayNotBeSeenIsNotMissing) {
  put("f", "");
  const uid_t nobody = 65534;
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::none);
  const bool is_superuser = ::geteuid() == 0;
  ASSERT_TRUE(!is_superuser || ::seteuid(nobody) == 0);
  EXPECT_THAT(message_of_error<PermissionDeniedError>([&] { files_.exists(path("f")); }), HasSubstr(path("f")));
  EXPECT_THROW(files_.is_directory(path("f")), PermissionDeniedError);
  ASSERT_TRUE(!is_superuser || ::seteuid(0) == 0);
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::owner_all);
  EXPECT_TRUE(files_.exists(path("f")));
}

TEST_F(Files, AnExistingFileIsTruncatedOrRefused) {
  put("f", "old");
  EXPECT_THROW(files_.create(path("f"), FileSystem::IfExists::kFail), AlreadyExistsError);
  EXPECT_EQ(contents("f"), "old");
  files_.create(path("f"))->close();
  EXPECT_EQ(contents("f"), "");
}

TEST_F(Files, DirectoriesAreMadeWithTheirParents) {
  files_.make_directories(path("a/b/c"));
  files_.make_directories(path("a/b/c"));
  files_.make_directories(path("a/b/d/"));
  EXPECT_TRUE(files_.is_directory(path("a/b/c")));
  EXPECT_THAT(files_.list(path("a/b")), ElementsAre("c", "d"));
  EXPECT_FALSE(files_.is_directory(path("a/x")));
}

TEST_F(Files, ListsAreSorted) {
  for (const char* name : {"b", "a", "C", "10", "9"}) put(name, "");
  EXPECT_THAT(files_.list(directory_.path()), ElementsAre("10", "9", "C", "a", "b"));
}

TEST_F(Files, LinksKeepTheContents) {
  put("f", "contents");
  files_.link(path("f"), path("g"));
  files_.remove(path("f"));
  EXPECT_EQ(contents("g"), "contents");
  EXPECT_FALSE(files_.exists(path("f")));
}

TEST_F(Files, TimesAndRoomAreKnown) {
  put("f", "");
  EXPECT_GT(files_.modified_at(path("f")), 1.6e9);
  EXPECT_GT(files_.free_bytes(directory_.path()), 0u);
}

TEST_F(Files, ALargerFileThanAllowedIsNotRead) {
  put("f", "0123456789");
  EXPECT_EQ(read_file(files_, path("f"), 10), "0123456789");
  EXPECT_THROW(read_file(files_, path("f"), 9), ResourceExhaustedError);
}

TEST_F(Files, AtomicReplacementSyncsBeforeItRenames) {
  FaultyFileSystem faulty;
  write_file_atomically(faulty, path("f"), "new");
  auto done = faulty.operations();
  for (auto& operation : done) operation = operation.substr(0, operation.find(' '));
  EXPECT_THAT(done, ElementsAre("create", "append", "sync", "close", "rename", "sync_directory"));
}

TEST_F(Files, AtomicReplacementLeavesTheOldOrTheNewFile) {
  for (int n = 0; n < 6; ++n) {
    put("f", "old");
    FaultyFileSystem faulty;
    faulty.fail_operation(n);
    EXPECT_THROW(write_file_atomically(faulty, path("f"), "new"), UnavailableError) << n;
    EXPECT_EQ(contents("f"), n < 5 ? "old" : "new") << n;
    EXPECT_THAT(files_.list(directory_.path()), ElementsAre("f")) << n;
  }
}

TEST(Paths, AreSplitAndJoined) {
  EXPECT_EQ(directory_name("a/b"), "a");
  EXPECT_EQ(directory_name("b"), ".");
  EXPECT_EQ(directory_name("/b"), "/");
  EXPECT_EQ(directory_name("a//b"), "a");
  EXPECT_EQ(base_name("a/b"), "b");
  EXPECT_EQ(base_name("b"), "b");
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(join_path("a", "/b"), "/b");
  EXPECT_EQ(strip_file_scheme("file:///x/y"), "/x/y");
  EXPECT_EQ(strip_file_scheme("/x/y"), "/x/y");
}

}  // namespace
}  // namespace longhaul
