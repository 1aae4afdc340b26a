#include "longhaul/io/direct/direct_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <random>

#include "longhaul/base/huge_pages.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMebibyte = size_t{1} << 20;

struct ReadPath {
  const char* name;
  bool direct;
  std::unique_ptr<IoQueue> (*queue)(size_t depth);
};

// Memory that begins at a page.
std::shared_ptr<char> pages(size_t size) {
  return {static_cast<char*>(std::aligned_alloc(4096, size / 4096 * 4096 + 4096)), &std::free};
}

// Asks for pieces of the file and says what came: of each request the bytes, in the order of the file.
class Reading {
 public:
  Reading(const ReadableFile& file, int fd, DirectReaderOptions options)
      : file_(file), fd_(fd), options_(std::move(options)) {}

  void want(uint64_t offset, size_t count, size_t misalignment = 0) {
    memory_.push_back(pages(count + misalignment));
    requests_.push_back({offset, memory_.back().get() + misalignment, count});
  }
  void show(uint64_t offset, size_t count) { requests_.push_back({offset, nullptr, count}); }

  void run() {
    parts_.resize(requests_.size());
    errors_.resize(requests_.size());
    const auto use = [this](const ReadPart& part) {
      if (part.error) errors_[part.request] = message_of(part.error);
      EXPECT_TRUE(part.error || parts_[part.request].emplace(part.begin, part.bytes).second) << "twice the same";
      const char* out = requests_[part.request].out;
      EXPECT_TRUE(part.error || !part.bytes.empty());
      EXPECT_TRUE(part.error || out == nullptr || part.bytes.data() == out + part.begin);
    };
    read_directly(file_, fd_, requests_, use, options_);
  }

  std::string bytes(size_t request) const {
    std::string all;
    for (const auto& [begin, part] : parts_[request]) {
      EXPECT_EQ(begin, all.size());
      all += part;
    }
    return all;
  }
  const std::string& error(size_t request) const { return errors_[request]; }
  const std::vector<ReadRequest>& requests() const { return requests_; }

 private:
  const ReadableFile& file_;
  const int fd_;
  const DirectReaderOptions options_;
  std::vector<std::shared_ptr<char>> memory_;
  std::vector<ReadRequest> requests_;
  std::vector<std::map<size_t, std::string>> parts_;
  std::vector<std::string> errors_;
};

// A queue that reads, but says of each read what a test wants to be said.
struct ReadScript {
  std::deque<ssize_t> results;  // of the next reads, if they are less; then what is true
  size_t submitted = 0;
};

class ScriptedReads : public IoQueue {
 public:
  ScriptedReads(ReadScript& script, std::unique_ptr<IoQueue> inner) : script_(script), inner_(std::move(inner)) {}
  ~ScriptedReads() override { EXPECT_EQ(under_way_, 0); }

  void submit(const Transfer& transfer, size_t tag) override {
    ++script_.submitted;
    ++under_way_;
    inner_->submit(transfer, tag);
  }
  std::optional<Finished> poll() override { return std::nullopt; }
  Finished wait() override {
    --under_way_;
    Finished finished = inner_->wait();
    if (script_.results.empty()) return finished;
    finished.result = std::min(finished.result, script_.results.front());
    script_.results.pop_front();
    return finished;
  }

 private:
  ReadScript& script_;
  std::unique_ptr<IoQueue> inner_;
  int under_way_ = 0;
};

// A file of several megabytes that does not end at a multiple of 4096. A test without a queue of its own reads it on
// each path.
class DirectReaderTest : public ::testing::TestWithParam<ReadPath> {
 protected:
  DirectReaderTest() {
    std::mt19937 random(5);
    contents_.resize(5 * kMebibyte + 777);
    for (char& byte : contents_) byte = static_cast<char>(random());
    write_file_atomically(FileSystem::real(), path_, contents_);
    file_ = FileSystem::real().open(path_);
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~DirectReaderTest() override { ::close(fd_); }

  void SetUp() override {
    if (GetParam().queue != make_uring_queue) return;
    LONGHAUL_NEEDS("system_calls", make_uring_queue(1) != nullptr, "io_uring is refused here");
  }

  // Small blocks, so that a few megabytes are many.
  static DirectReaderOptions small_blocks() {
    return {.smallest_batch = 1, .in_flight = 3, .plan = {.block_bytes = 256 * 1024, .window_bytes = 128 * 1024}};
  }
  Reading reading(const ReadableFile& file) {
    DirectReaderOptions options = small_blocks();
    options.direct = GetParam().direct;
    options.queue = GetParam().queue;
    return {file, fd_, options};
  }

  void expect_right(const Reading& reading) {
    for (size_t i = 0; i < reading.requests().size(); ++i) {
      const ReadRequest& request = reading.requests()[i];
      const std::string wanted = contents_.substr(std::min<uint64_t>(request.offset, contents_.size()), request.count);
      EXPECT_TRUE(reading.bytes(i) == wanted) << i << ": " << request.count << " bytes at " << request.offset;
      EXPECT_TRUE(request.out == nullptr || std::string_view(request.out, wanted.size()) == wanted) << i;
    }
  }

  testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.file("file");
  std::string contents_;
  std::unique_ptr<ReadableFile> file_;
  int fd_ = -1;
};

INSTANTIATE_TEST_SUITE_P(Paths, DirectReaderTest,
                         ::testing::Values(ReadPath{"Uring", true, make_uring_queue},
                                           ReadPath{"Threads", true, make_threaded_queue},
                                           ReadPath{"AtOnce", true, make_plain_queue},
                                           ReadPath{"UringThroughTheCache", false, make_uring_queue},
                                           ReadPath{"ThreadsThroughTheCache", false, make_threaded_queue}),
                         [](const auto& info) { return info.param.name; });

TEST_P(DirectReaderTest, EveryPathReadsTheSameBytes) {
  Reading reading = this->reading(*file_);
  reading.want(0, kMebibyte);                // at pages here and there
  reading.want(kMebibyte, 300'000);          // ... but for its end
  reading.want(4096, 200'000, 64);           // not in memory
  reading.want(2 * kMebibyte + 5, 700'000);  // not in the file
  reading.want(3 * kMebibyte - 8, 4);        // small
  reading.want(3 * kMebibyte - 4, 100);
  reading.show(2 * kMebibyte - 100, 2 * kMebibyte);
  reading.want(4 * kMebibyte, kMebibyte + 777);  // to the end
  reading.want(4 * kMebibyte + 12288, 0);
  reading.run();
  expect_right(reading);
}

TEST_P(DirectReaderTest, WhatLiesBehindTheEndDoesNotCome) {
  Reading reading = this->reading(*file_);
  reading.want(4 * kMebibyte, 2 * kMebibyte);
  reading.want(5 * kMebibyte + 700, 100);
  reading.want(6 * kMebibyte, 100'000);
  reading.show(5 * kMebibyte, kMebibyte);
  reading.run();
  expect_right(reading);
}

TEST_P(DirectReaderTest, AnyRequestsAreRight) {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    Reading reading = this->reading(*file_);
    for (int i = 0; i < 30; ++i) {
      const uint64_t offset =
          random() % contents_.size() / (random() % 2 == 0 ? 4096 : 1) * (random() % 2 == 0 ? 4096 : 1);
      const size_t count = random() % (random() % 2 == 0 ? 400'000 : 5'000);
      if (random() % 4 == 0) {
        reading.show(offset % contents_.size(), count);
      } else {
        reading.want(offset % contents_.size(), count, random() % 2 * 64);
      }
    }
    reading.run();
    expect_right(reading);
  }
}

TEST_P(DirectReaderTest, WhatACallbackThrowsComesOutOnceNothingIsUnderWay) {
  ReadScript script;
  DirectReaderOptions options = small_blocks();
  options.direct = GetParam().direct;
  options.queue = [&script](size_t depth) { return std::make_unique<ScriptedReads>(script, GetParam().queue(depth)); };
  const auto memory = pages(5 * kMebibyte);
  const ReadRequest request{0, memory.get(), 5 * kMebibyte};
  const auto refuse = [](const ReadPart&) { throw DataLossError("seen enough"); };
  EXPECT_THROW(read_directly(*file_, fd_, {&request, 1}, refuse, options), DataLossError);
  EXPECT_EQ(script.submitted, 3u);
}

// A file of which some bytes cannot be read.
class BadFile : public ReadableFile {
 public:
  BadFile(const ReadableFile& good, uint64_t bad) : good_(good), bad_(bad) {}
  uint64_t size() const override { return good_.size(); }
  size_t read(uint64_t offset, char* out, size_t count) const override {
    if (offset <= bad_ && bad_ < offset + count) throw_errno(EIO, "read bad");
    return good_.read(offset, out, count);
  }

 private:
  const ReadableFile& good_;
  const uint64_t bad_;
};

class DirectReaderFaults : public DirectReaderTest {
 protected:
  void SetUp() override {}

  Reading scripted(const ReadableFile& file) {
    DirectReaderOptions options = small_blocks();
    options.queue = [this](size_t) { return std::make_unique<ScriptedReads>(script_, make_plain_queue(1)); };
    return {file, fd_, options};
  }

  ReadScript script_;
};

TEST_F(DirectReaderFaults, AReadThatIsRefusedOrShortIsMadeUpFor) {
  script_.results = {-EINVAL, 4096, 0, -EIO, 100'000, 1};
  Reading reading = scripted(*file_);
  reading.want(0, kMebibyte);
  reading.want(kMebibyte + 1, 100);
  reading.want(kMebibyte + 200, 100);
  reading.show(2 * kMebibyte, 500'000);
  reading.run();
  expect_right(reading);
  EXPECT_TRUE(script_.results.empty());
}

TEST_F(DirectReaderFaults, AnErrorIsToldOfTheRequestThatHasIt) {
  script_.results.assign(100, -EIO);
  const BadFile file(*file_, kMebibyte + 250);
  Reading reading = scripted(file);
  reading.want(0, kMebibyte);
  reading.want(kMebibyte + 1, 100);
  reading.want(kMebibyte + 200, 100);
  reading.run();
  EXPECT_EQ(reading.error(0) + reading.error(1), "");
  EXPECT_TRUE(reading.bytes(0) == contents_.substr(0, kMebibyte));
  EXPECT_TRUE(reading.bytes(1) == contents_.substr(kMebibyte + 1, 100));
  EXPECT_THAT(reading.error(2), HasSubstr("read bad: Input/output error"));
}

TEST_F(DirectReaderFaults, ASmallBatchAsksForNoQueue) {
  DirectReaderOptions options;
  options.queue = [](size_t) -> std::unique_ptr<IoQueue> { throw InternalError("asked for a queue"); };
  Reading small(*file_, fd_, options);
  small.want(0, 1000);
  small.want(4096, 500'000);
  small.run();
  expect_right(small);
  Reading large(*file_, fd_, options);
  large.want(0, kMebibyte);
  EXPECT_THROW(large.run(), InternalError);
}

int64_t page_faults() {
  rusage usage;
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return usage.ru_minflt;
}

// 16 MiB that are only shown.
class DirectReader : public ::testing::Test {
 protected:
  DirectReader() {
    const std::string path = directory_.file("f"), bytes(16 * kMebibyte, 'x');
    write_file_atomically(FileSystem::real(), path, bytes);
    file_ = FileSystem::real().open(path);
  }

  void read(const ReadableFile::UsePart& use) const {
    const ReadRequest all{.count = 16 * kMebibyte};
    file_->read_batch({&all, 1}, use);
  }

 private:
  testing::TemporaryDirectory directory_;
  std::unique_ptr<ReadableFile> file_;
};

// In small pages, of which faults can be counted.
TEST_F(DirectReader, WhatIsOnlyShownCostsPageFaultsTheFirstTimeAlone) {
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  const auto faults_of_a_reading = [this] {
    const int64_t before = page_faults();
    size_t seen = 0;
    read([&](const ReadPart& part) { seen += part.bytes.size(); });
    EXPECT_EQ(seen, 16 * kMebibyte);
    return page_faults() - before;
  };
  faults_of_a_reading();
  EXPECT_LT(faults_of_a_reading(), 1000) << "of 4096 pages";
  ASSERT_EQ(::prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
}

TEST_F(DirectReader, WhatIsOnlyShownBeginsAtAHugePage) {
  int windows = 0;
  read([&](const ReadPart& part) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(part.bytes.data()) % kHugePage, 0u);
    ++windows;
  });
  EXPECT_EQ(windows, 4);
}

TEST(ReadPlan, NeighboursComeInOneReadAndLargeOnesInBlocks) {
  const auto memory = pages(kMebibyte);
  std::vector<ReadRequest> requests;
  for (uint64_t i = 0; i < 100; ++i) requests.push_back({i * 50, memory.get() + i * 50, 50});
  requests.push_back({8192, memory.get(), 200'000});
  const auto plan = plan_reads(requests, {.block_bytes = 131072});
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0].size, 8192u);
  EXPECT_EQ(plan[0].parts.size(), 100u);
  EXPECT_EQ(plan[0].straight, 0u);
  EXPECT_EQ(plan[1].straight, 131072u);
  EXPECT_EQ(plan[2].straight, 65536u);  // 68,928 bytes are left, and fill 16 pages
  EXPECT_EQ(plan[2].size, 69632u);
}

}  // namespace
}  // namespace longhaul
