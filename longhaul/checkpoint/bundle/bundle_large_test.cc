// Checkpoints whose tensors are written straight from where they are.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>
#include <cstdlib>
#include <deque>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/bundle/bundle_writer.h"
#include "longhaul/io/direct/direct_writer.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using testing::FaultyFileSystem;
using ::testing::IsEmpty;
using testing::TemporaryDirectory;

// Floats at an address that is a multiple of 4096.
Tensor aligned(int64_t count, uint32_t seed) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  auto* const memory = static_cast<float*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
  for (int64_t i = 0; i < count; ++i) memory[i] = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8);
  return Tensor::wrap(kFloat, {count}, memory, std::shared_ptr<const void>(memory, &std::free));
}

// A large file is written in small blocks on a path of the test's choice.
class OnPath : public FaultyFileSystem {
 public:
  OnPath(bool direct, std::unique_ptr<IoQueue> (*queue)(size_t)) : direct_(direct), queue_(queue) {}
  std::unique_ptr<WritableFile> create_large(const std::string& path, const LargeFileOptions& options) override {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return std::make_unique<DirectWriter>(fd, path,
                                          DirectWriterOptions{.expected_bytes = options.expected_bytes,
                                                              .block_bytes = 256 * 1024,
                                                              .in_flight = 3,
                                                              .direct = direct_,
                                                              .queue = queue_});
  }

 private:
  const bool direct_;
  std::unique_ptr<IoQueue> (*queue_)(size_t);
};

// Writes when it is waited for, and no sooner.
class HeldQueue : public IoQueue {
 public:
  void submit(const Transfer& transfer, size_t tag) override { held_.emplace_back(transfer, tag); }
  Finished wait() override {
    queue_->submit(held_.front().first, held_.front().second);
    held_.pop_front();
    return queue_->wait();
  }
  std::optional<Finished> poll() override { return std::nullopt; }

 private:
  const std::unique_ptr<IoQueue> queue_ = make_plain_queue(1);
  std::deque<std::pair<Transfer, size_t>> held_;
};

std::unique_ptr<IoQueue> make_held_queue(size_t /*depth*/) {
  return std::make_unique<HeldQueue>();
}

struct Bytes {
  std::string data, index;
  bool operator==(const Bytes&) const = default;
};

// Large and small, aligned and not, strings and parts.
Bytes saved(FileSystem& files) {
  const TemporaryDirectory directory;
  const std::string prefix = directory.file("m");
  BundleWriterOptions options;
  options.add_expected(0, aligned(1'000'000, 1));
  BundleWriter writer(files, prefix, options);
  for (uint32_t i = 0; i < 24; ++i) {
    writer.add("aligned" + std::to_string(i), aligned(1 + i * i * 1237 % 300'000, i));
    Tensor unaligned(kFloat, {i * 7919});
    for (float& value : unaligned.mutable_flat<float>()) value = static_cast<float>(i);
    writer.add("unaligned" + std::to_string(i), unaligned);
    writer.add("text" + std::to_string(i), Tensor::of<std::string>({"a", std::string(i * 5000, 'x')}));
  }
  for (int64_t i = 0; i < 2; ++i)
    writer.add_slice("sliced", {400'000}, {{{i * 200'000, 200'000}}}, aligned(200'000, 9));
  writer.finish();
  EXPECT_THAT(BundleReader(FileSystem::real(), prefix).verify(), IsEmpty());
  return {read_file(FileSystem::real(), prefix + ".data-00000-of-00001"),
          read_file(FileSystem::real(), prefix + ".index")};
}

TEST(LargeBundle, HasTheSameBytesOnEveryPath) {
  FaultyFileSystem ordinary;
  const Bytes wanted = saved(ordinary);
  EXPECT_TRUE(saved(FileSystem::real()) == wanted);
  OnPath threads(true, make_threaded_queue), at_once(true, make_plain_queue), cache(false, make_io_queue);
  for (FileSystem* files : {&threads, &at_once, &cache}) EXPECT_TRUE(saved(*files) == wanted);
}

TEST(LargeBundle, HasTheSameBytesThroughUring) {
  LONGHAUL_NEEDS("system_calls", make_uring_queue(1) != nullptr, "io_uring is refused here");
  FaultyFileSystem ordinary;
  OnPath uring(true, make_uring_queue);
  EXPECT_TRUE(saved(uring) == saved(ordinary));
}

TEST(LargeBundle, KeepsATensorUntilItIsWrittenAndNoLonger) {
  const TemporaryDirectory directory;
  OnPath files(true, make_held_queue);
  BundleWriter writer(files, directory.file("m"));
  Tensor tensor = aligned(1 << 16, 1);
  const std::weak_ptr<const void> owner = tensor.owner();
  writer.add("v", tensor);
  tensor = Tensor();
  EXPECT_FALSE(owner.expired());
  writer.finish_data();
  EXPECT_TRUE(owner.expired());
  writer.commit();
  EXPECT_TRUE(identical(BundleReader(FileSystem::real(), directory.file("m")).read("v"), aligned(1 << 16, 1)));
}

TEST(LargeBundle, LetsGoOfTensorsWhileOthersAreAdded) {
  const TemporaryDirectory directory;
  OnPath files(true, make_plain_queue);
  BundleWriter writer(files, directory.file("m"));
  Tensor tensor = aligned(1 << 16, 1);
  const std::weak_ptr<const void> owner = tensor.owner();
  writer.add("v", tensor);
  tensor = Tensor();
  for (uint32_t i = 0; i < 8; ++i) writer.add(std::to_string(i), aligned(1 << 16, i));
  EXPECT_TRUE(owner.expired());
  writer.finish();
}

// The system refuses to make a file so large: every path finds out while writes are under way.
TEST(LargeBundle, AnErrorWhileWritesAreUnderWayLeavesNothing) {
  const LogSink before = set_log_sink([](LogLevel, const std::string&) {});
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit;
  ::getrlimit(RLIMIT_FSIZE, &old_limit);
  OnPath threads(true, make_threaded_queue), cache(false, make_io_queue);
  for (FileSystem* files :
       {&FileSystem::real(), static_cast<FileSystem*>(&threads), static_cast<FileSystem*>(&cache)}) {
    const TemporaryDirectory directory;
    Tensor tensor = aligned(3 << 20, 1);
    const std::weak_ptr<const void> owner = tensor.owner();
    const rlimit limit{5 << 20, old_limit.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    {
      BundleWriter writer(*files, directory.file("m"));
      EXPECT_THROW(
          {
            writer.add("v", tensor);
            writer.finish();
          },
          Error);
      tensor = Tensor();
      EXPECT_TRUE(owner.expired());
      EXPECT_THROW(writer.finish(), FailedPreconditionError);
    }
    ::setrlimit(RLIMIT_FSIZE, &old_limit);
    EXPECT_THAT(FileSystem::real().list(directory.path()), IsEmpty());
  }
  std::signal(SIGXFSZ, old_handler);
  set_log_sink(before);
}

}  // namespace
}  // namespace longhaul
