#include "longhaul/data/prefetcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr Seconds kLong{20};

// Records what is made, and can hold the makers back.
class PrefetcherTest : public ::testing::Test {
 protected:
  std::unique_ptr<Prefetcher> prefetcher(int num_threads, int ahead, Seconds timeout = kLong) {
    PrefetchWork work{.exists = [this](int64_t position) { return exists(position); },
                      .make = [this](int64_t position, const auto& abandoned) { return make(position, abandoned); },
                      .stride = 10};
    return std::make_unique<Prefetcher>(std::move(work), num_threads, ahead, timeout);
  }

  bool exists(int64_t position) {
    if (position >= end_) asked_behind_end_ = true;
    return position < end_;
  }

  Batch make(int64_t position, const std::atomic<bool>& abandoned) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    begun_.push_back(position);
    changed_.notify_all();
    while (held_.contains(position) && !abandoned) changed_.wait_for(mutex_, Seconds{0.01});
    if (fails_.erase(position) > 0) throw DataLossError("damaged");
    return {Tensor::scalar(position)};
  }

  // Until so many have been begun. False: they were not, for long.
  bool await_begun(size_t count) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (int i = 0; i < 3000 && begun_.size() < count; ++i) changed_.wait_for(mutex_, Seconds{0.01});
    return begun_.size() >= count;
  }

  // Until a thread has seen that there is no more to do.
  bool await_end() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    for (int i = 0; i < 3000 && !asked_behind_end_; ++i) changed_.wait_for(mutex_, Seconds{0.01});
    return asked_behind_end_;
  }

  std::vector<int64_t> begun() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return begun_;
  }

  void hold(std::set<int64_t> positions) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    held_ = std::move(positions);
    changed_.notify_all();
  }

  void fail_once_at(int64_t position) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    fails_.insert(position);
  }

  static int64_t take(Prefetcher& prefetcher, int64_t position) { return prefetcher.at(position)[0].item<int64_t>(); }

  const int64_t end_ = 1000;

 private:
  std::atomic<bool> asked_behind_end_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int64_t> begun_ GUARDED_BY(mutex_);
  std::set<int64_t> held_ GUARDED_BY(mutex_), fails_ GUARDED_BY(mutex_);
};

TEST_F(PrefetcherTest, GivesEachPositionItsBatch) {
  for (const int threads : {1, 3}) {
    const auto ahead = prefetcher(threads, 4);
    for (int64_t position = 0; position < end_; position += 10) EXPECT_EQ(take(*ahead, position), position);
  }
}

TEST_F(PrefetcherTest, DoesNothingBeforeItKnowsWhereToBegin) {
  const auto ahead = prefetcher(2, 4);
  EXPECT_EQ(take(*ahead, 500), 500);
  for (const int64_t position : begun()) EXPECT_GE(position, 500);
}

TEST_F(PrefetcherTest, IsAheadByNoMoreThanItMay) {
  const auto ahead = prefetcher(2, 3);
  take(*ahead, 0);
  ASSERT_TRUE(await_begun(4));
  take(*ahead, 10);
  ASSERT_TRUE(await_begun(5));
  std::vector<int64_t> positions = begun();
  std::ranges::sort(positions);
  EXPECT_EQ(positions, (std::vector<int64_t>{0, 10, 20, 30, 40}));
}

TEST_F(PrefetcherTest, KeepsTheOrderWhenALaterOneIsReadyFirst) {
  const auto ahead = prefetcher(2, 4);
  hold({0});
  auto first = std::async(std::launch::async, [&] { return take(*ahead, 0); });
  ASSERT_TRUE(await_begun(4));  // the other thread made 10, 20 and 30 meanwhile
  hold({});
  EXPECT_EQ(first.get(), 0);
  EXPECT_EQ(take(*ahead, 10), 10);
}

TEST_F(PrefetcherTest, BeginsAgainWhereThePositionIsNow) {
  const auto ahead = prefetcher(2, 4);
  take(*ahead, 0);
  EXPECT_EQ(take(*ahead, 505), 505);
  EXPECT_EQ(take(*ahead, 515), 515);
  EXPECT_EQ(take(*ahead, 3), 3);
}

TEST_F(PrefetcherTest, LeavesWhatItIsMakingWhenThePositionHasChanged) {
  const auto ahead = prefetcher(1, 4);
  hold({10, 20, 30, 40});
  take(*ahead, 0);
  ASSERT_TRUE(await_begun(2));  // the only thread is held back with 10
  EXPECT_EQ(take(*ahead, 500), 500);
}

TEST_F(PrefetcherTest, ASkippedBatchCostsNoOther) {
  const auto ahead = prefetcher(1, 3);
  take(*ahead, 0);
  ASSERT_TRUE(await_begun(4));
  EXPECT_EQ(take(*ahead, 20), 20);
  EXPECT_EQ(take(*ahead, 30), 30);
  const std::vector<int64_t> positions = begun();
  EXPECT_EQ(std::ranges::count(positions, 20), 1);
  EXPECT_EQ(std::ranges::count(positions, 30), 1);
}

TEST_F(PrefetcherTest, AnErrorComesWithItsBatchAndNotBefore) {
  const auto ahead = prefetcher(2, 4);
  fail_once_at(20);
  EXPECT_EQ(take(*ahead, 0), 0);
  EXPECT_EQ(take(*ahead, 10), 10);
  EXPECT_THROW(take(*ahead, 20), DataLossError);
  EXPECT_EQ(take(*ahead, 20), 20);  // tried again
  EXPECT_EQ(take(*ahead, 30), 30);
}

TEST_F(PrefetcherTest, AStopEndsTheWaitAndTheThreadsAtWork) {
  const auto ahead = prefetcher(2, 4);
  hold({0, 10, 20, 30});
  auto waiting = std::async(std::launch::async, [&] { take(*ahead, 0); });
  ASSERT_TRUE(await_begun(2));
  ahead->stop();
  EXPECT_THROW(waiting.get(), CancelledError);
  EXPECT_THROW(take(*ahead, 0), CancelledError);
}

TEST_F(PrefetcherTest, WithoutATimeoutABatchAndAStopEndTheWait) {
  const auto ahead = prefetcher(2, 4, Seconds{0});
  hold({0});
  auto first = std::async(std::launch::async, [&] { return take(*ahead, 0); });
  ASSERT_TRUE(await_begun(1));
  hold({100});
  EXPECT_EQ(first.get(), 0);
  auto never = std::async(std::launch::async, [&] { take(*ahead, 100); });
  while (std::ranges::count(begun(), 100) == 0) std::this_thread::yield();
  ahead->stop();
  EXPECT_THROW(never.get(), CancelledError);
}

TEST_F(PrefetcherTest, EndsWhileItsThreadsAreBusy) {
  auto ahead = prefetcher(3, 8);
  hold({10, 20, 30, 40, 50, 60, 70, 80});
  take(*ahead, 0);
  ASSERT_TRUE(await_begun(4));
  auto ended = std::async(std::launch::async, [&] { ahead.reset(); });
  EXPECT_EQ(ended.wait_for(kLong), std::future_status::ready);
}

TEST_F(PrefetcherTest, AWaitHasTheTimeoutItWasGiven) {
  const auto ahead = prefetcher(1, 1, Seconds{0.02});
  hold({0});
  EXPECT_THROW(take(*ahead, 0), DeadlineExceededError);
}

TEST_F(PrefetcherTest, MakesNothingBehindTheEnd) {
  auto ahead = prefetcher(1, 8);
  EXPECT_EQ(take(*ahead, 980), 980);
  EXPECT_TRUE(await_end());
  EXPECT_EQ(take(*ahead, 990), 990);
  ahead.reset();
  EXPECT_EQ(begun(), (std::vector<int64_t>{980, 990}));
}

}  // namespace
}  // namespace longhaul
