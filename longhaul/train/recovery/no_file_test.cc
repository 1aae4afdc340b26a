// Something else has the name of a file: a directory, a pipe, a socket.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/recovery/fall_back_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

void make_pipe(const std::string& path) {
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

void make_socket(const std::string& path) {
  struct sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<struct sockaddr*>(&address), sizeof(address)), 0);
  ::close(socket);
}

void make_directory_with_a_file(const std::string& path) {
  std::filesystem::create_directory(path);
  write_file_atomically(FileSystem::real(), join_path(path, "notes"), "somebody's");
}

class NoFileTest : public FallBackTest {
 protected:
  // Falls back to the second checkpoint, and tells of the third and what is wrong with it.
  void falls_back_from(const std::string& replaced) {
    const LogRecorder log;
    EXPECT_EQ(restored(), 2);
    EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr(prefixes[2] + " is damaged"), HasSubstr(replaced)));
    EXPECT_THAT(corrupt_indexes(), ElementsAre("model-3.index.corrupt"));
    restart();
    EXPECT_EQ(restored(), 2);
    restart();
  }
  std::vector<std::string> corrupt_indexes() {
    std::vector<std::string> names = FileSystem::real().list(directory.path());
    std::erase_if(names, [](const std::string& name) { return !name.ends_with(".index.corrupt"); });
    return names;
  }
  void start_over() {
    for (const std::string& name : FileSystem::real().list(directory.path())) {
      if (name.find("model-") == 0) std::filesystem::remove_all(directory.file(name));
    }
    for (int i = 1; i <= 3; ++i) prefixes[static_cast<size_t>(i) - 1] = save(static_cast<float>(i), i);
    restart();
  }
};

TEST_F(NoFileTest, InPlaceOfTheNewestIndexOrItsDataIsDamage) {
  lock();
  for (const auto& make : {make_pipe, make_socket, make_directory_with_a_file}) {
    for (const std::string& path : {index_path(prefixes[2]), data_path(prefixes[2], 0, 1)}) {
      std::filesystem::remove(path);
      make(path);
      falls_back_from(path);
      start_over();
    }
  }
}

TEST_F(NoFileTest, ADirectoryThatWasRenamedStays) {
  lock();
  std::filesystem::remove(index_path(prefixes[2]));
  make_directory_with_a_file(index_path(prefixes[2]));
  EXPECT_EQ(restored(), 2);
  remove_corrupt_sets(FileSystem::real(), directory.path(), 0);
  EXPECT_TRUE(std::filesystem::exists(index_path(prefixes[2]) + ".corrupt/notes"));
}

TEST_F(NoFileTest, InPlaceOfTheFileOfPinsEndsTheStart) {
  lock();
  const std::string path = directory.file("checkpoint.retention");
  std::filesystem::create_directory(path);
  EXPECT_THAT(error_of([&] { restored(); }), AllOf(HasSubstr(path + " is a directory"), HasSubstr("move it away")));
  EXPECT_THROW(restored(), FailedPreconditionError);
  const auto before = FileSystem::real().list(directory.path());
  const auto session = make_scripted_session(graph, server);
  session->run(v.initializer());
  EXPECT_THROW(saver.save(*session, directory.file("model"), 4), FailedPreconditionError);
  EXPECT_EQ(FileSystem::real().list(directory.path()), before);
}

TEST_F(NoFileTest, PinsThatMayNotBeReadAreNotReplaced) {
  saver.pin(prefixes[0]);
  lock();
  BadDisk disk;
  options.files = &disk;
  disk.before_open = [](const std::string& path) {
    if (path.ends_with(".retention")) throw PermissionDeniedError("open " + path + ": Permission denied");
  };
  EXPECT_THAT(error_of([&] { restored(); }), AllOf(HasSubstr("checkpoint.retention"), HasSubstr("let this user read")));
  EXPECT_THROW(restored(), PermissionDeniedError);
}

TEST_F(NoFileTest, InPlaceOfTheJournalIsToldAtTheStart) {
  for (const char* name : {"run.journal", "run.journal.crash"}) {
    std::filesystem::create_directory(directory.file(name));
    const LogRecorder log;
    RunJournal journal(directory.path(), {.clock = &clock});
    journal.begin();
    journal.ended(nullptr, false);
    EXPECT_THAT(log.text(LogLevel::kError),
                AllOf(HasSubstr(directory.file(name) + " is a directory"), HasSubstr("move it away")));
    std::filesystem::remove(directory.file(name));
  }
}

TEST_F(NoFileTest, ADirectoryThatIsGivenAsACheckpointIsToldOfItsLatest) {
  const auto session = make_scripted_session(graph, server);
  EXPECT_THAT(error_of([&] { saver.restore(*session, directory.path()); }),
              AllOf(HasSubstr("not a valid checkpoint: " + directory.path()),
                    HasSubstr("That is a directory, but a checkpoint is named by the prefix of its files"),
                    HasSubstr("the latest one in the directory is " + prefixes[2])));
  const testing::TemporaryDirectory empty;
  EXPECT_THAT(error_of([&] { saver.restore(*session, empty.path()); }), HasSubstr("the directory has no checkpoints"));
}

TEST_F(NoFileTest, InPlaceOfTheLocksFilesIsNamedWithTheRemedy) {
  for (const char* name : {"chief.lock", "chief.owner"}) {
    std::filesystem::create_directory(directory.file(name));
    EXPECT_THAT(error_of([&] { lock(); }),
                AllOf(HasSubstr(directory.file(name) + " is a directory"), HasSubstr("move it away")));
    std::filesystem::remove(directory.file(name));
  }
}

}  // namespace
}  // namespace longhaul
