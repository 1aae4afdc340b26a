#include "longhaul/host/readers/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/proto/serialize.h"

namespace longhaul {

// The right to move the reader; others wait for it outside the lock that the counts are under.
class Reader::Turn {
 public:
  Turn(Reader& reader, const WaitLimits& limits) : reader_(reader) {
    std::optional<Cancellation::Watch> watch;
    if (limits.cancellation != nullptr) watch.emplace(*limits.cancellation, [this] { end_wait(); });
    if (take(limits.deadline)) return;
    if (limits.cancellation != nullptr) limits.cancellation->check();
    throw DeadlineExceededError(reader_.name_ + ": the run timed out while another run was reading");
  }
  ~Turn() {
    MutexLock lock(reader_.mutex_);
    reader_.taken_ = false;
    reader_.turn_ended_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  void end_wait() {
    MutexLock lock(reader_.mutex_);
    cancelled_ = true;
    reader_.turn_ended_.notify_all();
  }

  // false: the work was cancelled, or its time is over.
  bool take(Seconds deadline) {
    MutexLock lock(reader_.mutex_);
    while (!cancelled_) {
      const Seconds left = deadline - Clock::real().now();
      if (deadline.count() > 0 && left < Seconds{0}) return false;
      if (!reader_.taken_) {
        reader_.taken_ = true;
        return true;
      }
      if (deadline.count() > 0) {
        reader_.turn_ended_.wait_for(reader_.mutex_, left);  // wait: the run's time
      } else {
        reader_.turn_ended_.wait(reader_.mutex_);  // wait: the end of the other's turn and a cancellation end it
      }
    }
    return false;
  }

  Reader& reader_;
  bool cancelled_ = false;  // guarded by the reader's mutex
};

Reader::Records Reader::read(int64_t limit, const NextFile& next_file, FileSystem& files, const WaitLimits& limits,
                             Keys keys) {
  constexpr int64_t kMostReserved = 4096;
  if (limit < 1)
    throw InvalidArgumentError(
        fmt::format("{}: the number of records to read must be at least 1, not {}", name_, limit));
  Turn turn(*this, limits);
  throw_left_over();
  Records records;
  records.values.reserve(static_cast<size_t>(std::min(limit, kMostReserved)));
  if (keys == Keys::kWanted) records.keys.reserve(records.values.capacity());
  try {
    uint64_t bytes = 0;
    while (static_cast<int64_t>(records.values.size()) < limit && bytes < kMostBytesAtOnce) {
      if (read_one(next_file, files, keys, records)) {
        bytes += records.values.back().size();
      } else {
        finish_work();
      }
      if (!work_ && !records.values.empty()) break;  // the file has ended
    }
  } catch (const Error&) {
    if (records.values.empty()) throw;
    left_over_ = std::current_exception();
  }
  MutexLock lock(mutex_);
  produced_ += static_cast<int64_t>(records.values.size());
  return records;
}

// False: the file has ended.
bool Reader::read_one(const NextFile& next_file, FileSystem& files, Keys keys, Records& records) {
  if (!work_) work_ = std::make_unique<Work>(Work{next_file(), {}, nullptr});
  if (!work_->source) open(files);
  std::string value;
  if (!work_->source->next(value)) return false;
  records.values.push_back(std::move(value));
  if (keys == Keys::kWanted) records.keys.push_back(work_->source->key());
  if (work_->source->ended()) finish_work();
  return true;
}

void Reader::open(FileSystem& files) {
  try {
    work_->source = open_(files, work_->path, work_->place);
  } catch (...) {
    work_.reset();
    throw;
  }
}

void Reader::throw_left_over() {
  if (left_over_) std::rethrow_exception(std::exchange(left_over_, nullptr));
}

// Forgets what was before.
void Reader::start_with(std::unique_ptr<Work> work) {
  work_ = std::move(work);
  left_over_ = nullptr;
}

void Reader::finish_work() {
  work_.reset();
  MutexLock lock(mutex_);
  ++completed_;
}

int64_t Reader::num_records_produced() const {
  MutexLock lock(mutex_);
  return produced_;
}

int64_t Reader::num_work_units_completed() const {
  MutexLock lock(mutex_);
  return completed_;
}

std::string Reader::serialize_state(const WaitLimits& limits) {
  Turn turn(*this, limits);
  proto::ReaderBaseState state;
  if (work_) {
    const RecordPlace place = work_->source ? work_->source->place() : work_->place;
    state.set_current_work(work_->path);
    state.set_offset(place.offset);
    state.set_number(place.number);
  }
  MutexLock lock(mutex_);
  state.set_work_finished(completed_);
  state.set_work_started(completed_ + (work_ ? 1 : 0));
  state.set_num_records_produced(produced_);
  return proto::serialize(state);
}

void Reader::restore_state(const std::string& bytes, const WaitLimits& limits) {
  proto::ReaderBaseState state;
  const bool parsed = state.ParseFromString(bytes);
  const int64_t under_way = parsed ? state.work_started() - state.work_finished() : -1;
  if (!parsed || state.work_finished() < 0 || state.num_records_produced() < 0 || state.number() < 0 ||
      (under_way != 0 && under_way != 1)) {
    throw InvalidArgumentError(fmt::format("Could not parse state for {}: {} bytes", name_, bytes.size()));
  }
  Turn turn(*this, limits);
  start_with(under_way == 0
                 ? nullptr
                 : std::make_unique<Work>(Work{state.current_work(), {state.offset(), state.number()}, nullptr}));
  MutexLock lock(mutex_);
  completed_ = state.work_finished();
  produced_ = state.num_records_produced();
}

void Reader::reset(const WaitLimits& limits) {
  Turn turn(*this, limits);
  start_with(nullptr);
  MutexLock lock(mutex_);
  completed_ = produced_ = 0;
}

}  // namespace longhaul
