#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <thread>

#include "longhaul/ops/state_ops.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

constexpr int kVariables = 8;
constexpr int64_t kElements = 16 << 10;  // of each; few enough for one thread
constexpr uint64_t kVariableBytes = kElements * sizeof(float);

// A model of several variables that are large enough for buffers of their own; a step adds one to every element.
class SnapshotMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Output one = ops::constant(root_, Tensor::of<float>({kElements}, std::vector<float>(kElements, 1.f)));
    std::vector<Operation> updates, initializers;
    for (int i = 0; i < kVariables; ++i) {
      const Tensor zeros = Tensor::of<float>({kElements}, std::vector<float>(kElements, 0.f));
      variables_.push_back(ops::variable(root_, fmt::format("v{}", i), zeros));
      initializers.push_back(variables_.back().initializer());
      updates.push_back(ops::assign_add(root_, variables_.back(), one).op());
    }
    train_ = ops::group(root_, updates, "train");
    train_first_ = updates.front();
    train_low_ = ops::group(root_, {updates.begin(), updates.begin() + kVariables / 2}, "train_low");
    train_high_ = ops::group(root_, {updates.begin() + kVariables / 2, updates.end()}, "train_high");
    init_ = ops::group(root_, initializers, "init");
  }

  void start(std::optional<uint64_t> snapshot_memory) {
    session_ = std::make_unique<DirectSession>(graph_, SessionOptions{.snapshot_memory = snapshot_memory});
    session_->run(init_);
    snapshots_ = snapshots_of(*session_);
  }

  std::vector<Tensor> take() { return snapshots_->take(*session_, {variables_.begin(), variables_.end()}); }

  const VariableMemory& memory() { return session_->resources().variables().memory(); }

  static bool holds_one_moment(const std::vector<Tensor>& values) {
    const float first = values[0].flat<float>()[0];
    return std::ranges::all_of(values, [&](const Tensor& value) {
      return std::ranges::all_of(value.flat<float>(), [&](float x) { return x == first; });
    });
  }

  Graph graph_;
  Scope root_{graph_};
  std::vector<Variable> variables_;
  Operation train_, train_first_, train_low_, train_high_, init_;
  std::unique_ptr<DirectSession> session_;
  std::shared_ptr<Snapshots> snapshots_;
};

TEST_F(SnapshotMemoryTest, ASnapshotIsWholeWhileThreadsTrainIntoReusedBuffers) {
  start(std::nullopt);
  const Callable step = session_->make_callable(train_);
  std::atomic<bool> stop{false};
  std::vector<std::thread> training;
  for (int i = 0; i < 3; ++i) {
    training.emplace_back([&] {
      while (!stop.load()) step();
    });
  }
  std::vector<Tensor> kept = take();
  for (int i = 0; i < 100; ++i) {
    const std::vector<Tensor> values = take();
    ASSERT_TRUE(holds_one_moment(values)) << i;
    std::this_thread::yield();
    ASSERT_TRUE(holds_one_moment(values)) << "changed after it was taken, " << i;
    if (i % 10 == 0) {
      ASSERT_TRUE(holds_one_moment(kept)) << i;
      kept = values;
    }
  }
  stop = true;
  for (std::thread& thread : training) thread.join();
}

TEST_F(SnapshotMemoryTest, AfterTheFirstSaveNoMemoryIsNew) {
  start(std::nullopt);
  for (int save = 0; save < 4; ++save) {
    std::vector<Tensor> values = take();
    session_->run(train_);
    EXPECT_EQ(memory().bytes_free(), 0u);
    EXPECT_EQ(memory().bytes_beyond(), kVariables * kVariableBytes);
    values.clear();
    EXPECT_EQ(memory().bytes_free(), kVariables * kVariableBytes) << "kept for the next";
    EXPECT_EQ(memory().bytes_beyond(), 0u);
  }
  session_->close();
  EXPECT_EQ(memory().bytes_free(), 0u);
}

TEST_F(SnapshotMemoryTest, OneObjectServesAllWhoSave) {
  start(std::nullopt);
  memory().prepare([] { return false; });
  const std::shared_ptr<Snapshots> other = snapshots_of(*session_);
  EXPECT_EQ(other, snapshots_);
  snapshots_.reset();
  EXPECT_EQ(other->bytes_free(), kVariables * kVariableBytes);
}

TEST_F(SnapshotMemoryTest, AStepWaitsUntilTheSaverHasLetGoOfEnough) {
  constexpr uint64_t kLimit = 3 * kVariableBytes;
  start(kLimit);
  std::vector<Tensor> values = take();
  std::atomic<bool> done{false};
  std::thread step([&] {
    session_->run(train_);
    done = true;
  });
  const float before = values[0].flat<float>()[0];
  for (int i = 0; i < kVariables - 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    EXPECT_FALSE(done.load()) << i;
    EXPECT_LE(memory().bytes_beyond(), kLimit);
    values[static_cast<size_t>(i)] = Tensor();
  }
  step.join();
  EXPECT_TRUE(done.load());
  EXPECT_EQ(memory().bytes_beyond(), kLimit) << "the three that are held";
  EXPECT_EQ(values.back().flat<float>()[0], before);
  EXPECT_EQ(session_->run(variables_[0]).flat<float>()[0], before + 1);
}

TEST_F(SnapshotMemoryTest, AStepThatWaitsIsWokenByWhoeverLetsGo) {
  start(kVariableBytes);
  std::vector<Tensor> fetched = session_->run({variables_.begin(), variables_.begin() + 1}, {});
  session_->run(train_first_);
  ASSERT_EQ(memory().bytes_beyond(), kVariableBytes) << "what was fetched takes all the room";
  std::vector<Tensor> values = take();
  std::future<void> step = std::async(std::launch::async, [&] { session_->run(train_first_); });
  EXPECT_EQ(step.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  fetched.clear();
  EXPECT_EQ(step.wait_for(std::chrono::seconds(30)), std::future_status::ready);
  EXPECT_EQ(values[0].flat<float>()[0], 1);
  values.clear();
  step.get();
  EXPECT_EQ(session_->run(variables_[0]).flat<float>()[0], 2);
}

TEST_F(SnapshotMemoryTest, AStepThatFindsRoomDoesNotWait) {
  start(kVariableBytes);
  const std::vector<Tensor> values = take();
  session_->run(train_first_);
  session_->run(train_first_);
  EXPECT_EQ(memory().bytes_beyond(), kVariableBytes);
  EXPECT_EQ(values[0].flat<float>()[0], 0);
}

TEST_F(SnapshotMemoryTest, TheLimitHoldsWhileThreadsTrain) {
  constexpr uint64_t kLimit = 2 * kVariableBytes;
  start(kLimit);
  const Callable steps[] = {session_->make_callable(train_low_), session_->make_callable(train_high_)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> training;
  for (const Callable& step : steps) {
    training.emplace_back([&] {
      while (!stop.load()) step();
    });
  }
  uint64_t most = 0;
  for (int i = 0; i < 100; ++i) {
    for (Tensor& value : take()) {
      std::this_thread::yield();
      most = std::max(most, memory().bytes_beyond());
      value = Tensor();
    }
  }
  stop = true;
  for (std::thread& thread : training) thread.join();
  EXPECT_LE(most, kLimit);
}

TEST_F(SnapshotMemoryTest, ReadsAndOtherSnapshotsGoOnWhileAStepWaits) {
  start(0);
  std::vector<Tensor> values = take();
  std::thread step([&] { session_->run(train_); });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(session_->run(variables_[1]).flat<float>()[0], 0);
    EXPECT_TRUE(holds_one_moment(take()));
  }
  values.clear();
  step.join();
}

TEST_F(SnapshotMemoryTest, ASaverThatFailsLetsTheStepGoOn) {
  start(0);
  std::thread step;
  EXPECT_THROW(
      {
        const std::vector<Tensor> values = take();
        step = std::thread([&] { session_->run(train_); });
        throw UnavailableError("the disk is full");
      },
      UnavailableError);
  step.join();
  EXPECT_EQ(session_->run(variables_[0]).flat<float>()[0], 1);
}

TEST_F(SnapshotMemoryTest, WaitingEndsWithTheRunsDeadlineAndWithTheSession) {
  start(0);
  const std::vector<Tensor> values = take();
  EXPECT_THROW(session_->run(train_, {}, {.timeout = Seconds{0.05}}), DeadlineExceededError);
  EXPECT_EQ(session_->run(variables_[0]).flat<float>()[0], 0) << "it had written nothing";
  session_->close();
  EXPECT_TRUE(holds_one_moment(values));
}

// Two steps while a saver lets go of nothing; the limit is nothing.
void exceed(const VariableMemory& memory, const std::shared_ptr<SnapshotLimit>& limit) {
  VariableSlot variable(ResourceName{kLocalContainer, "v"}, memory, std::make_shared<StateChanges>());
  variable.assign(Value(at::zeros({kElements})));
  std::shared_ptr<SnapshotLimit::Snapshot> snapshot = limit->begin();
  std::vector<Tensor> values{variable.read().to_host()};
  SnapshotLimit::Snapshot::hold(std::move(snapshot), &values);
  StepGate gate;
  VariableSlot* const written[] = {&variable};
  for (int i = 0; i < 2; ++i) {
    const SnapshotLimit::Entry entry(gate, *limit, written, Seconds{0});
  }
}

TEST_F(SnapshotMemoryTest, ASaverThatNeverLetsGoIsNotWaitedForForEver) {
  const VariableMemory memory;
  const LogRecorder log;
  exceed(memory, std::make_shared<SnapshotLimit>(memory, 0, Seconds{0.02}));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("training continues and exceeds snapshot_memory"));
}

TEST_F(SnapshotMemoryTest, ASlowLogHoldsUpNobodyElse) {
  const VariableMemory memory;
  const auto limit = std::make_shared<SnapshotLimit>(memory, 0, Seconds{0.02});
  std::vector<std::future<void>> others;
  int held_up = 0;
  const LogSink before = set_log_sink([&](LogLevel, const std::string&) {
    others.push_back(std::async(std::launch::async, [&] { limit->close(); }));
    if (others.back().wait_for(std::chrono::seconds(10)) != std::future_status::ready) ++held_up;
  });
  exceed(memory, limit);
  set_log_sink(before);
  EXPECT_EQ(others.size(), 2u) << "of the wait in vain, and of the snapshot's end";
  EXPECT_EQ(held_up, 0);
}

}  // namespace
}  // namespace longhaul
