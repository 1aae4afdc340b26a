#include "longhaul/io/direct/direct_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <limits>
#include <random>

#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

// Bytes at an address that is a multiple of 4096, and `offset` further.
class Memory {
 public:
  explicit Memory(size_t size, size_t offset = 0)
      : memory_(static_cast<char*>(std::aligned_alloc(4096, (size + offset) / 4096 * 4096 + 4096)), &std::free),
        bytes_(memory_.get() + offset, size) {
    std::mt19937 random(static_cast<unsigned>(size + offset));
    for (size_t i = 0; i < size; ++i) memory_.get()[offset + i] = static_cast<char>(random());
  }
  std::string_view bytes() const { return bytes_; }
  const std::shared_ptr<char>& owner() const { return memory_; }

 private:
  std::shared_ptr<char> memory_;
  std::string_view bytes_;
};

struct WritePath {
  const char* name;
  bool direct;
  std::unique_ptr<IoQueue> (*queue)(size_t depth);
};

// A test without a queue of its own writes on each path.
class DirectWriterTest : public ::testing::TestWithParam<WritePath> {
 protected:
  void SetUp() override {
    if (GetParam().queue != make_uring_queue) return;
    LONGHAUL_NEEDS("system_calls", make_uring_queue(1) != nullptr, "io_uring is refused here");
  }

  std::unique_ptr<DirectWriter> create(DirectWriterOptions options) {
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return std::make_unique<DirectWriter>(fd, path_, std::move(options));
  }

  // Small blocks, so that a few megabytes are many.
  std::unique_ptr<DirectWriter> create_on_path(uint64_t expected_bytes = 0) {
    return create({.expected_bytes = expected_bytes,
                   .block_bytes = 256 * 1024,
                   .in_flight = 3,
                   .direct = GetParam().direct,
                   .queue = GetParam().queue});
  }

  std::string contents() const { return read_file(FileSystem::real(), path_); }

  uint64_t bytes_on_disk() const {
    struct stat info;
    EXPECT_EQ(::stat(path_.c_str(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("file");
};

INSTANTIATE_TEST_SUITE_P(Paths, DirectWriterTest,
                         ::testing::Values(WritePath{"Uring", true, make_uring_queue},
                                           WritePath{"Threads", true, make_threaded_queue},
                                           WritePath{"AtOnce", true, make_plain_queue},
                                           WritePath{"ThroughTheCache", false, make_threaded_queue}),
                         [](const auto& info) { return info.param.name; });

// Pieces of all sizes and alignments, lent and copied, some brought to a multiple of 4096 as the writers of checkpoints
// do.
TEST_P(DirectWriterTest, WhatIsAppendedIsTheFile) {
  const auto file = create_on_path();
  std::string wanted;
  std::mt19937 random(1);
  for (int i = 0; i < 60; ++i) {
    const bool large = random() % 2 == 0;
    if (large && random() % 2 == 0) {
      const std::string gap(-wanted.size() % 4096, '\0');
      file->append(gap);
      wanted += gap;
    }
    const Memory memory(random() % (large ? 700'000 : 9'000), random() % 2 * (random() % 4096));
    wanted += memory.bytes();
    if (random() % 3 == 0) {
      file->append(memory.bytes());
    } else {
      file->append_borrowed(memory.bytes(), memory.owner());
    }
    if (i % 20 != 10) continue;
    file->flush();
    EXPECT_TRUE(contents().substr(0, wanted.size()) == wanted);
  }
  file->sync();
  EXPECT_TRUE(contents() == wanted);
  file->append("the end");
  file->close();
  EXPECT_TRUE(contents() == wanted + "the end");
}

TEST_P(DirectWriterTest, WhatWasForetoldIsTheFileAndMoreMayFollow) {
  const Memory memory(3 * kMiB + 5000);
  const std::string wanted(memory.bytes());
  for (const size_t last : {size_t{5}, size_t{4096}, size_t{100'000}, wanted.size()}) {
    const auto file = create_on_path(wanted.size());
    file->append_borrowed(memory.bytes().substr(0, wanted.size() - last), memory.owner());
    file->append_borrowed(memory.bytes().substr(wanted.size() - last), memory.owner());
    file->append("");
    if (last == 4096) file->sync();
    file->append("and more");
    file->close();
    EXPECT_TRUE(contents() == wanted + "and more") << last;
  }
}

TEST_P(DirectWriterTest, AFileTooLargeIsAnErrorWithItsName) {
  const auto file = create_on_path();
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  const rlimit limit{2 * kMiB, old_limit.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &limit);
  const Memory memory(8 * kMiB);
  try {
    file->append_borrowed(memory.bytes());
    file->sync();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("write " + path_ + ": File too large"));
  }
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_THROW(file->append("x"), FailedPreconditionError);
  EXPECT_THROW(file->close(), FailedPreconditionError);
}

TEST_P(DirectWriterTest, RoomThatWasNotNeededIsGivenBack) {
  const auto file = create({.expected_bytes = 64 * kMiB, .direct = GetParam().direct});
  const Memory memory(9 * kMiB + 5);
  file->append_borrowed(memory.bytes());
  file->sync();
  EXPECT_TRUE(contents() == memory.bytes());
  EXPECT_LT(bytes_on_disk(), 10 * kMiB);
}

// A queue that holds every write until it is waited for, and then says what the test wants of it.
struct WriteScript {
  std::deque<ssize_t> results;  // of the first writes; then all succeed
  size_t submitted = 0;
  size_t under_way = 0;
  size_t over = 0;  // of those; the next ones that are polled
};

class ScriptedWrites : public IoQueue {
 public:
  explicit ScriptedWrites(WriteScript& script) : script_(script) {}
  ~ScriptedWrites() override { EXPECT_EQ(script_.under_way, 0u); }

  void submit(const Transfer& transfer, size_t tag) override {
    ++script_.submitted;
    ++script_.under_way;
    waiting_.push_back({transfer, tag});
  }

  std::optional<Finished> poll() override {
    if (script_.over == 0) return std::nullopt;
    --script_.over;
    return wait();
  }

  Finished wait() override {
    const auto [write, tag] = waiting_.front();
    waiting_.pop_front();
    --script_.under_way;
    ssize_t room = std::numeric_limits<ssize_t>::max();
    if (!script_.results.empty()) {
      room = script_.results.front();
      script_.results.pop_front();
    }
    return {tag, room < 0 ? room : write_at_most(static_cast<size_t>(room), write)};
  }

 private:
  static ssize_t write_at_most(size_t room, const Transfer& write) {
    std::vector<iovec> pieces(write.pieces.begin(), write.pieces.end());
    for (iovec& piece : pieces) {
      piece.iov_len = std::min(piece.iov_len, room);
      room -= piece.iov_len;
    }
    return ::pwritev(write.fd, pieces.data(), static_cast<int>(pieces.size()), static_cast<off_t>(write.offset));
  }

  struct Waiting {
    Transfer write;
    size_t tag;
  };
  WriteScript& script_;
  std::deque<Waiting> waiting_;
};

class DirectWriterQueueTest : public DirectWriterTest {
 protected:
  void SetUp() override {}

  std::unique_ptr<DirectWriter> create_scripted(size_t block_bytes = 256 * 1024, uint64_t expected_bytes = 0) {
    return create(
        {.expected_bytes = expected_bytes, .block_bytes = block_bytes, .in_flight = 3, .queue = [this](size_t) {
           return std::make_unique<ScriptedWrites>(script_);
         }});
  }

  WriteScript script_;
};

constexpr ssize_t kWhole = ssize_t{1} << 40;

TEST_F(DirectWriterQueueTest, AnOwnerIsKeptUntilItsBytesAreWritten) {
  const auto file = create_scripted();
  Memory first(256 * 1024), more(1024 * 1024);
  const std::weak_ptr<char> owner = first.owner();
  const std::string bytes(first.bytes());
  file->append_borrowed(first.bytes(), first.owner());
  first = Memory(1);
  EXPECT_EQ(script_.under_way, 1u);
  EXPECT_FALSE(owner.expired());
  file->append_borrowed(more.bytes(), more.owner());
  EXPECT_TRUE(owner.expired());
  file->close();
  EXPECT_EQ(script_.under_way, 0u);
  EXPECT_TRUE(contents() == bytes + std::string(more.bytes()));
}

TEST_F(DirectWriterQueueTest, AnOwnerIsLetGoByTheNextAppendOnceItsBytesAreWritten) {
  for (const bool lends : {false, true}) {
    const auto file = create_scripted();
    Memory first(256 * 1024);
    const Memory next(64 * 1024);
    const std::weak_ptr<char> owner = first.owner();
    const auto append = [&] { lends ? file->append_borrowed(next.bytes(), next.owner()) : file->append(next.bytes()); };
    file->append_borrowed(first.bytes(), first.owner());
    const std::string bytes = std::string(first.bytes()) + std::string(next.bytes()) + std::string(next.bytes());
    first = Memory(1);
    append();
    EXPECT_FALSE(owner.expired());
    script_.over = script_.under_way;
    append();
    EXPECT_TRUE(owner.expired()) << lends;
    file->close();
    EXPECT_TRUE(contents() == bytes);
  }
}

TEST_F(DirectWriterQueueTest, AWriteThatIsSeenToHaveFailedComesOutOfTheNextAppend) {
  script_ = {.results = {-EIO}};
  const auto file = create_scripted();
  const Memory memory(256 * 1024);
  file->append_borrowed(memory.bytes(), memory.owner());
  script_.over = 1;
  EXPECT_THROW(file->append("x"), DataLossError);
  EXPECT_EQ(script_.under_way, 0u);
}

TEST_P(DirectWriterTest, WhatIsWrittenIsLetGoThoughFewWritesAreUnderWay) {
  const auto file = create_on_path();
  Memory memory(256 * 1024);
  const std::weak_ptr<char> owner = memory.owner();
  file->append_borrowed(memory.bytes(), memory.owner());
  memory = Memory(1);
  for (int i = 0; i < 5000 && !owner.expired(); ++i) {
    ::usleep(1000);
    file->append("x");
  }
  EXPECT_TRUE(owner.expired());
}

TEST_F(DirectWriterQueueTest, AFailedWriteComesOutOfALaterCallAndLeavesNothingUnderWay) {
  for (const char* met_by : {"append", "flush", "sync", "close"}) {
    script_ = {.results = {kWhole, -EIO}};
    auto file = create_scripted();
    Memory memory(std::string(met_by) == "append" ? 2 * kMiB : 512 * 1024);
    const std::weak_ptr<char> owner = memory.owner();
    try {
      file->append_borrowed(memory.bytes(), memory.owner());
      if (std::string(met_by) == "flush") file->flush();
      if (std::string(met_by) == "sync") file->sync();
      if (std::string(met_by) == "close") file->close();
      ADD_FAILURE() << met_by << " met no error";
    } catch (const DataLossError& error) {
      EXPECT_THAT(error.what(), HasSubstr("write " + path_ + ": Input/output error"));
    }
    EXPECT_EQ(script_.under_way, 0u);
    memory = Memory(1);
    EXPECT_TRUE(owner.expired()) << met_by;
  }
}

TEST_F(DirectWriterQueueTest, ADestroyedFileHasNothingUnderWay) {
  {
    const Memory memory(600 * 1024);
    const auto file = create_scripted();
    file->append_borrowed(memory.bytes());
    EXPECT_GT(script_.under_way, 0u);
  }
  EXPECT_EQ(script_.under_way, 0u);
}

TEST_F(DirectWriterQueueTest, AShortWriteIsFinished) {
  script_.results = {24 * 4096, kWhole, 4096, 0};
  const auto file = create_scripted();
  const Memory memory(2 * kMiB + 77);
  file->append_borrowed(memory.bytes());
  file->close();
  EXPECT_TRUE(contents() == memory.bytes());
}

TEST_F(DirectWriterQueueTest, WritesThatAreRefusedGoThroughTheCache) {
  script_.results = {-EINVAL, -EINVAL, -EINVAL};
  const auto file = create_scripted();
  const Memory memory(2 * kMiB + 77);
  file->append_borrowed(memory.bytes());
  file->close();
  EXPECT_TRUE(contents() == memory.bytes());
}

TEST_F(DirectWriterQueueTest, ADeviceWithNothingToDoGetsABlockThatIsNotFullYet) {
  const auto file = create_scripted(8 * kMiB);
  const Memory memory(kMiB);
  file->append(memory.bytes().substr(1));
  EXPECT_EQ(script_.submitted, 0u) << "less than 1 MiB";
  file->append(memory.bytes().substr(0, 1));
  EXPECT_EQ(script_.submitted, 1u);
  for (int i = 0; i < 3; ++i) file->append(memory.bytes());
  EXPECT_EQ(script_.submitted, 1u) << "the device has something to do";
  script_.over = 1;
  file->append(memory.bytes());
  EXPECT_EQ(script_.submitted, 2u);
  file->close();
  const std::string whole(memory.bytes());
  EXPECT_TRUE(contents() == whole.substr(1) + whole.substr(0, 1) + whole + whole + whole + whole);
}

TEST_F(DirectWriterQueueTest, WhatWasForetoldIsUnderWayOnceItIsAllThere) {
  const Memory memory(2 * kMiB + 5000);
  for (const bool lends : {false, true}) {
    const auto file = create_scripted(8 * kMiB, memory.bytes().size());
    file->append_borrowed(memory.bytes().substr(0, kMiB));
    EXPECT_EQ(script_.submitted, 1u);
    file->append_borrowed(memory.bytes().substr(kMiB, kMiB - 4096));
    EXPECT_EQ(script_.submitted, 1u) << "the device has something to do";
    const std::string_view last = memory.bytes().substr(2 * kMiB - 4096);
    lends ? file->append_borrowed(last) : file->append(last);
    EXPECT_EQ(script_.submitted, 2u) << lends;
    file->close();
    EXPECT_TRUE(contents() == memory.bytes());
    script_.submitted = 0;
  }
}

TEST_F(DirectWriterQueueTest, WhatWasForetoldIsUnderWayThoughItCameAtOnce) {
  const Memory memory(kMiB + 5000);
  const auto file = create_scripted(8 * kMiB, memory.bytes().size());
  file->append(memory.bytes());
  EXPECT_EQ(script_.submitted, 1u);
  file->close();
  EXPECT_TRUE(contents() == memory.bytes());
}

TEST_F(DirectWriterQueueTest, ASmallFileIsWrittenWithoutAQueue) {
  const auto file = create_scripted(kMiB);
  const Memory memory(900 * 1024);
  file->append_borrowed(memory.bytes());
  file->append("x");
  file->sync();
  file->append("y");
  file->close();
  EXPECT_EQ(script_.submitted, 0u);
  EXPECT_TRUE(contents() == std::string(memory.bytes()) + "xy");
}

// A device that refuses O_DIRECT, and is always full.
TEST(DirectWriter, AFullDiskIsAnErrorWithItsName) {
  DirectWriter file(::open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full");
  const Memory memory(kMiB);
  try {
    file.append_borrowed(memory.bytes());
    file.sync();
    ADD_FAILURE() << "no error";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("write /dev/full: No space left on device"));
  }
}

TEST(DirectWriter, ALargeFileOfTheRealFileSystemIsOne) {
  const testing::TemporaryDirectory directory;
  const auto file = FileSystem::real().create_large(directory.file("f"), {.if_exists = FileSystem::IfExists::kFail});
  EXPECT_NE(dynamic_cast<DirectWriter*>(file.get()), nullptr);
  EXPECT_THROW(FileSystem::real().create_large(directory.file("f"), {.if_exists = FileSystem::IfExists::kFail}),
               AlreadyExistsError);
}

}  // namespace
}  // namespace longhaul
