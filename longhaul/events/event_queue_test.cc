#include "longhaul/events/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "longhaul/io/records/record.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using Result = EventQueue::Result;

std::string record_of(std::string_view payload) {
  std::string record;
  append_record(record, payload);
  return record;
}

std::vector<std::string> payloads_of(const std::string& records) {
  std::vector<std::string> payloads;
  for (size_t at = 0; at < records.size();) {
    uint64_t length;
    std::memcpy(&length, records.data() + at, sizeof(length));
    payloads.push_back(records.substr(at + kRecordHeaderBytes, length));
    at += kRecordHeaderBytes + length + kRecordFooterBytes;
  }
  return payloads;
}

std::vector<std::string> taken_from(EventQueue& queue) {
  std::string records;
  const size_t events = queue.take(records);
  auto payloads = payloads_of(records);
  EXPECT_EQ(payloads.size(), events);
  return payloads;
}

class Queue : public ::testing::Test {
 protected:
  Queue() { queue_.open(); }

  // As a thread of its own, which has a shard of its own.
  void add_elsewhere(const std::string& payload) {
    std::thread([&] { queue_.add(record_of(payload)); }).join();
  }

  EventQueue queue_{1000, 100'000};
};

TEST_F(Queue, RecordsComeOutInTheOrderInWhichTheyWereAddedAcrossThreads) {
  std::vector<std::string> expected;
  for (int i = 0; i < 40; ++i) {
    expected.push_back(std::to_string(i));
    if (i % 3 == 0) {
      queue_.add(record_of(expected.back()));
    } else {
      add_elsewhere(expected.back());
    }
  }
  EXPECT_EQ(queue_.events(), 40u);
  EXPECT_EQ(taken_from(queue_), expected);
  EXPECT_EQ(queue_.events(), 0u);
  EXPECT_THAT(taken_from(queue_), ElementsAre());
}

TEST_F(Queue, WhatIsTakenIsAppended) {
  std::string records = record_of("before");
  queue_.add(record_of("a"));
  add_elsewhere("b");
  EXPECT_EQ(queue_.take(records), 2u);
  EXPECT_THAT(payloads_of(records), ElementsAre("before", "a", "b"));
}

TEST_F(Queue, AFullQueueTakesNothingUntilItIsEmptied) {
  EventQueue queue(3, 100'000);
  queue.open();
  for (int i = 0; i < 3; ++i) EXPECT_NE(queue.add(record_of("x")), Result::kFull);
  EXPECT_TRUE(queue.is_full());
  EXPECT_EQ(queue.add(record_of("y")), Result::kFull);
  EXPECT_THAT(taken_from(queue), ElementsAre("x", "x", "x"));
  EXPECT_EQ(queue.add(record_of("y")), Result::kAddedWake);
}

TEST_F(Queue, BytesCountAsRecordsDo) {
  EventQueue queue(1000, 100);
  queue.open();
  EXPECT_EQ(queue.add(record_of(std::string(5000, 'x'))), Result::kAddedWake);
  EXPECT_EQ(queue.add(record_of("y")), Result::kFull);
}

TEST_F(Queue, TheFirstAndTheOneThatMakesItLargeWake) {
  EventQueue queue(8, 100'000);
  queue.open();
  std::vector<bool> wakes;
  for (int i = 0; i < 6; ++i) wakes.push_back(queue.add(record_of("x")) == Result::kAddedWake);
  EXPECT_THAT(wakes, ElementsAre(true, false, false, true, false, false));
  EXPECT_TRUE(queue.is_large());
}

TEST_F(Queue, AClosedQueueStillGivesWhatItHas) {
  queue_.add(record_of("x"));
  queue_.close();
  EXPECT_EQ(queue_.add(record_of("y")), Result::kClosed);
  EXPECT_THAT(taken_from(queue_), ElementsAre("x"));
}

TEST_F(Queue, TakingWhileManyAddLosesNothingAndKeepsEachOrder) {
  constexpr int kThreads = 3, kEach = 20'000;
  EventQueue queue(1 << 20, 1 << 30);
  queue.open();
  std::atomic<int> running = kThreads;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) queue.add(record_of(std::to_string(t) + " " + std::to_string(i)));
      --running;
    });
  std::string records;
  while (running > 0) queue.take(records);
  queue.take(records);
  for (auto& thread : threads) thread.join();

  std::map<int, int> next;
  for (const auto& payload : payloads_of(records)) {
    const size_t space = payload.find(' ');
    EXPECT_EQ(std::stoi(payload.substr(space)), next[std::stoi(payload.substr(0, space))]++);
  }
  for (int t = 0; t < kThreads; ++t) EXPECT_EQ(next[t], kEach);
}

}  // namespace
}  // namespace longhaul
