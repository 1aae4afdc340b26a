#include "longhaul/train/reporting/weight_digest.h"

#include <atomic>
#include <future>

#include "longhaul/base/deadline.h"
#include "longhaul/io/records/crc64.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/hanging_file_system_fixture.h"
#include "longhaul/train/hooks/hook_fixture.h"
#include "longhaul/train/hooks/weight_digest_hook.h"
#include "longhaul/train/supervisor/weight_digest_service.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(WeightDigest, IsTheCrcOfNamesDtypesShapesAndBytesInTheOrderOfNames) {  // bytes put together by hand
  const std::string zero(1, '\0');
  const std::string bytes = "a" + zero + "int32" + zero + "[2]" + zero + std::string("\1\0\0\0\2\0\0\0", 8) +  //
                            "b" + zero + "string" + zero + "[]" + zero + std::string("\2\0\0\0\0\0\0\0hi", 10);
  EXPECT_EQ(weight_digest({{"b", Tensor::scalar("hi")}, {"a", Tensor::of<int32_t>({1, 2})}}),
            fmt::format("crc64:{:016x}", crc64(bytes)));
}

TEST(WeightDigest, TellsNamesDtypesShapesAndValuesApart) {
  const auto of = [](const std::string& name, Tensor value) { return weight_digest({{name, std::move(value)}}); };
  const std::string digest = of("w", Tensor::of<float>({1, 2}));
  EXPECT_EQ(of("w", Tensor::of<float>({1, 2})), digest);
  EXPECT_NE(of("v", Tensor::of<float>({1, 2})), digest);
  EXPECT_NE(of("w", Tensor::of<float>({1, 3})), digest);
  EXPECT_NE(of("w", Tensor::of<float>({1, 2}).reshaped({2, 1})), digest);
  EXPECT_NE(of("w", Tensor::of<int32_t>({0x3f800000, 0x40000000})), digest);
  EXPECT_NE(of("w", Tensor::of<std::string>({"ab", ""})), of("w", Tensor::of<std::string>({"a", "b"})));
}

class WeightDigestHookTest : public HookTest {
 protected:
  // The steps of the digests in the events, and the texts.
  std::vector<std::string> digests() {
    writer->flush();
    std::vector<std::string> found;
    for (const proto::Event& event : events_in_directory(directory.path())) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() != kWeightDigestTag) continue;
        found.push_back(fmt::format("{} {}", event.step(), value.tensor().string_val(0)));
      }
    }
    return found;
  }
  std::string expected(int64_t at) {
    return fmt::format("{} {}", at, weight_digest({{"global_step", Tensor::scalar(at)}}));
  }
  WeightDigestHook hook{{.every_n_steps = 3, .summary_writer = writer}};
};

TEST_F(WeightDigestHookTest, WritesOneAfterEachStepThatIsDue) {
  start(hook);
  for (int i = 0; i < 7; ++i) train(hook);
  hook.end(*session);
  EXPECT_THAT(digests(), ElementsAre(expected(3), expected(6)));
}

TEST_F(WeightDigestHookTest, ATrainingThatGoesOnAtADueStepWritesThatOneAgain) {
  set_step(6);
  start(hook);
  for (int i = 0; i < 3; ++i) train(hook);
  hook.end(*session);
  EXPECT_THAT(digests(), ElementsAre(expected(6), expected(9)));
}

TEST_F(WeightDigestHookTest, RunsThatMakeNoStepWriteNothing) {
  set_step(5);
  start(hook);
  for (int i = 0; i < 3; ++i) run(hook, step);
  train(hook);
  for (int i = 0; i < 3; ++i) run(hook, step);
  hook.end(*session);
  EXPECT_THAT(digests(), ElementsAre(expected(6)));
}

// Counts the snapshots that are taken by way of its Snapshots.
class SnapshotCountingSession : public testing::ScriptedSession, SnapshotKeeping {
 public:
  using ScriptedSession::ScriptedSession;
  SessionCapabilities capabilities() override { return {.snapshot_keeping = this}; }

  int taken = 0;

 private:
  struct Counting : Snapshots {
    explicit Counting(int& count) : taken(count) {}
    std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) override {
      ++taken;
      return session.run(fetches, {}, {.snapshot = true});
    }
    void prepare(const std::function<bool()>&) override {}
    uint64_t bytes_free() const override { return 0; }
    int& taken;
  };

  std::shared_ptr<Snapshots> snapshots() override { return std::make_shared<Counting>(taken); }
};

TEST_F(WeightDigestHookTest, ItsSnapshotsAreTheSessionsOwnAndKeepToTheirLimit) {
  SnapshotCountingSession counting(graph);
  counting.run(step.initializer());
  WeightDigests digests(graph, step, writer);
  digests.take(counting);
  digests.take(counting);
  EXPECT_TRUE(digests.finish());
  EXPECT_EQ(counting.taken, 2);
  EXPECT_EQ(counting.snapshot_runs(), 2);
}

// On which no file can be made until a test says so.
class FilesThatHang : public testing::FaultyFileSystem {
 public:
  std::unique_ptr<WritableFile> create(const std::string& path, IfExists if_exists) override {
    hangs_.wait(true);
    return FaultyFileSystem::create(path, if_exists);
  }
  void let_go() {
    hangs_ = false;
    hangs_.notify_all();
  }

 private:
  std::atomic<bool> hangs_ = true;
};

// Event files on such a disk. Their writer may be destroyed by the digests' own thread, which is waited for.
struct HungEvents {
  explicit HungEvents(const std::string& directory) {
    const auto gone = std::make_shared<std::promise<void>>();
    is_gone = gone->get_future();
    writer = {new FileWriter(directory, {.max_queue = 1, .files = &files}), [gone](FileWriter* used) {
                delete used;
                gone->set_value();
              }};
  }
  bool are_gone_within(Seconds time) const { return is_gone.wait_for(time) == std::future_status::ready; }

  FilesThatHang files;
  std::future<void> is_gone;
  std::shared_ptr<FileWriter> writer;
};

TEST_F(WeightDigestHookTest, EventFilesThatHangHoldUpNobodyForEver) {
  set_step(0);
  HungEvents events(directory.path());
  const LogRecorder log;
  {
    WeightDigests digests(graph, step, std::move(events.writer), Seconds{0.05});
    for (int i = 0; i < 8; ++i) digests.take(*session);
    EXPECT_FALSE(digests.finish());
  }
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("the weight digest of step 0 is skipped"));
  EXPECT_THAT(log.text(LogLevel::kError), HasSubstr("are dropped: does the file system of the event files hang?"));
  EXPECT_FALSE(events.are_gone_within(Seconds{0}));
  events.files.let_go();
  EXPECT_TRUE(events.are_gone_within(Seconds{20})) << "the thread ends when it can";
}

TEST_F(WeightDigestHookTest, EventFilesThatHangAreNotWaitedForBeyondADeadline) {
  set_step(0);
  HungEvents events(directory.path());
  Deadline deadline(Clock::real());
  auto ended = std::async(std::launch::async, [&] {
    WeightDigests digests(graph, step, std::move(events.writer), kDigestTimeout, &deadline);
    for (int i = 0; i < 3; ++i) digests.take(*session);  // the third is more than the event files take
    EXPECT_FALSE(digests.finish());
  });
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  deadline.bring_forward(Seconds{0.1});
  EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  events.files.let_go();
  EXPECT_TRUE(events.are_gone_within(Seconds{20}));
}

TEST_F(WeightDigestHookTest, AtTheEndItWaitsForHalfOfADeadlineAtMost) {
  testing::HangingFileSystem hanging;
  const ThreadsEnd writers_end;
  Deadline deadline(Clock::real());
  {
    WeightDigestHook late(
        {.every_n_steps = 3,
         .summary_writer = std::make_shared<FileWriter>(directory.path(), FileWriterOptions{.files = &hanging})});
    hanging.hang(testing::HangingFileSystem::At::kCreate);
    start(late);
    for (int i = 0; i < 3; ++i) train(late);
    deadline.bring_forward(Seconds{1});
    auto ended = std::async(std::launch::async, [&] { late.end_before(*session, &deadline); });
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  }
  hanging.let_go();
}

TEST_F(WeightDigestHookTest, WrongOptionsAreRefused) {
  EXPECT_THROW(WeightDigestHook({.every_n_steps = 0, .summary_writer = writer}), InvalidArgumentError);
  EXPECT_THAT(error_of([] { WeightDigestHook({.every_n_steps = 1}); }), HasSubstr("nowhere to write"));
}

// A session that can do nothing but run.
class BareSession : public testing::ScriptedSession {
 public:
  using ScriptedSession::ScriptedSession;
  SessionCapabilities capabilities() override { return {}; }
};

TEST_F(WeightDigestHookTest, AServiceNeedsASessionWhoseStepsCanBeWatched) {
  const auto bare = std::make_shared<BareSession>(graph);
  EXPECT_THROW(WeightDigestService(bare, step, writer, 3), UnimplementedError);
  EXPECT_THAT(error_of([&] { WeightDigestService(bare, step, writer, 3); }),
              AllOf(HasSubstr("digest_every_n_steps"), HasSubstr("StepWatching"), HasSubstr("WeightDigestHook")));
}

TEST_F(WeightDigestHookTest, ASessionThatKeepsNoMemoryForSnapshotsTakesPlainOnes) {
  BareSession bare(graph);
  bare.run(step.initializer());
  WeightDigests digests(graph, step, writer);
  digests.take(bare);
  EXPECT_TRUE(digests.finish());
  EXPECT_EQ(bare.snapshot_runs(), 1);
}

}  // namespace
}  // namespace longhaul
