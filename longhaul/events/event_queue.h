#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// A queue of records from many threads to one. If one record is added before another, in the same thread or across
// threads, it is taken first.
//
//   open --close--> closed --open--> open
//
// Each thread adds to one of several shards, so that concurrent threads do not wait for each other's cache lines. A
// ticket, drawn from one counter while the shard's lock is held, gives a record its place among all shards.
class EventQueue {
 public:
  // The queue is full once it has that many records or bytes; each thread may still add one more record.
  EventQueue(size_t max_events, size_t max_bytes);

  enum class Result {
    kAdded,
    kAddedWake,  // added, and it is the first or makes the queue large: notify the consumer
    kFull,
    kClosed,
  };
  Result add(std::string_view record);

  // Takes everything that was added before the call: appends the records to `records`, and returns their number.
  size_t take(std::string& records);

  size_t events() const { return queued() >> kEventShift; }
  bool is_full() const { return is_full_; }
  bool is_large() const { return is_large(queued()); }

  void open() { is_open_ = true; }
  void close() { is_open_ = false; }  // a record for which add() is about to return kAdded can still be taken
  bool is_open() const { return is_open_; }

 private:
  // The number of records and of their bytes in one number, so that one atomic addition updates both. Differences are
  // right despite overflow.
  using Ticket = uint64_t;
  static constexpr int kEventShift = 40;
  static constexpr Ticket kOneEvent = Ticket{1} << kEventShift;
  static constexpr size_t kShards = 8;

  struct Records {
    std::string bytes;
    std::vector<Ticket> tickets;
    size_t next = 0, offset = 0;  // the position up to which they are merged

    bool is_done() const { return next == tickets.size(); }
    void clear();
  };
  struct alignas(128) Shard {
    Mutex mutex;
    Records records GUARDED_BY(mutex);
  };

  Shard& shard_of_this_thread();
  Ticket queued() const { return issued_ - taken_; }
  bool is_large(Ticket queued) const { return reaches(queued, large_events_, large_bytes_); }
  static bool reaches(Ticket queued, size_t events, size_t bytes);
  void take_shards();
  void merge(std::string& records);
  Records* earliest();
  void copy_run(Records& from, std::string& records);

  const size_t max_events_, max_bytes_, large_events_, large_bytes_;
  std::atomic<bool> is_open_ = false, is_full_ = false;
  alignas(128) std::atomic<Ticket> issued_ = 0;
  alignas(128) std::atomic<Ticket> taken_ = 0;  // changes only while all shards are locked
  std::array<Shard, kShards> shards_;
  std::array<Records, kShards> taking_;  // used by take() only
};

}  // namespace longhaul
