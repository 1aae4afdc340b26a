#include "longhaul/base/waiting.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

// What one thread writes and others read: the version is odd while it is written, and what was read during a change of
// the version is read again. All of it is atomic, so that none of this is a data race.
class WaitRecord {
 public:
  void write(const Waiting::Note& note) {
    version_.fetch_add(1, std::memory_order_acq_rel);
    what_.store(note.what, std::memory_order_relaxed);
    since_.store(note.since.count(), std::memory_order_relaxed);
    for (size_t i = 0; i < name_.size(); ++i) {
      uint64_t word = 0;
      std::memcpy(&word, note.name + 8 * i, 8);
      name_[i].store(word, std::memory_order_relaxed);
    }
    version_.fetch_add(1, std::memory_order_release);
  }

  // By the thread itself.
  Waiting::Note own() const { return copy(); }

  // nullopt: the thread goes from wait to wait.
  std::optional<Waiting::Note> read() const {
    constexpr int kMostTries = 100;
    for (int i = 0; i < kMostTries; ++i) {
      const uint64_t before = version_.load(std::memory_order_acquire);
      const Waiting::Note note = copy();
      if (before % 2 == 0 && version_.fetch_add(0, std::memory_order_acq_rel) == before) return note;
    }
    return std::nullopt;
  }

  const int64_t thread = syscall(SYS_gettid);

 private:
  Waiting::Note copy() const {
    Waiting::Note note{.what = what_.load(std::memory_order_relaxed),
                       .since = Seconds{since_.load(std::memory_order_relaxed)}};
    for (size_t i = 0; i < name_.size(); ++i) {
      const uint64_t word = name_[i].load(std::memory_order_relaxed);
      std::memcpy(note.name + 8 * i, &word, 8);
    }
    return note;
  }

  mutable std::atomic<uint64_t> version_{0};
  std::atomic<const char*> what_{nullptr};
  std::atomic<double> since_{0};
  std::array<std::atomic<uint64_t>, Waiting::kMostName / 8> name_{};
};

struct WaitRecords {
  Mutex mutex;
  std::vector<const WaitRecord*> all GUARDED_BY(mutex);
};

WaitRecords& wait_records() {
  static auto& records = *new WaitRecords;  // threads that were left behind use it while the process ends
  return records;
}

// Of a thread, from its first wait to its end.
class OwnWaitRecord {
 public:
  OwnWaitRecord() {
    MutexLock lock(wait_records().mutex);
    wait_records().all.push_back(&record);
  }
  ~OwnWaitRecord();
  OwnWaitRecord(const OwnWaitRecord&) = delete;
  OwnWaitRecord& operator=(const OwnWaitRecord&) = delete;

  WaitRecord record;
};

thread_local bool thread_has_ended = false;  // what waits while the thread's variables are destroyed is not noted

OwnWaitRecord::~OwnWaitRecord() {
  thread_has_ended = true;
  MutexLock lock(wait_records().mutex);
  std::erase(wait_records().all, &record);
}

WaitRecord* own_record() {
  if (thread_has_ended) return nullptr;
  static thread_local OwnWaitRecord own;
  return &own.record;
}

std::string text_of_wait(const Waiting::Note& note) {
  const std::string name(note.name, strnlen(note.name, sizeof note.name));
  return name.empty() ? note.what : std::string(note.what) + " " + name;
}

}  // namespace

Waiting::Waiting(const char* what, std::string_view name) {
  WaitRecord* const record = own_record();
  if (record == nullptr) return;
  before_ = record->own();
  Note note{.what = what, .since = Clock::real().now()};
  name.copy(note.name, sizeof note.name);
  record->write(note);
}

Waiting::~Waiting() {
  if (WaitRecord* const record = own_record()) record->write(before_);
}

std::vector<WaitOfThread> waits_of_threads() {
  std::vector<WaitOfThread> waits;
  const Seconds now = Clock::real().now();
  MutexLock lock(wait_records().mutex);
  for (const WaitRecord* record : wait_records().all) {
    const std::optional<Waiting::Note> note = record->read();
    if (!note || note->what == nullptr) continue;
    waits.push_back({record->thread, text_of_wait(*note), std::max(Seconds{0}, now - note->since)});
  }
  return waits;
}

}  // namespace longhaul
