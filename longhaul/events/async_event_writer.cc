#include "longhaul/events/async_event_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {

namespace {

constexpr Seconds kLongWait{3600};

}  // namespace

void AsyncEventWriter::Batch::clear() {
  records.clear();
  events = 0;
}

AsyncEventWriter::AsyncEventWriter(std::string directory, FileWriterOptions options)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      files_(options_.files ? *options_.files : FileSystem::real()),
      clock_(options_.clock ? *options_.clock : Clock::real()),
      queue_(options_.max_queue, options_.max_queue_bytes) {
  reopen();
}

AsyncEventWriter::~AsyncEventWriter() {
  try {
    close();
  } catch (const std::exception& error) {
    log_error("{}", error.what());
  }
}

bool AsyncEventWriter::add(std::string_view record, IfFull if_full) {
  for (;;) {
    switch (queue_.add(record)) {
      case EventQueue::Result::kAdded: return true;
      case EventQueue::Result::kAddedWake: wake_writer(); return true;
      case EventQueue::Result::kClosed: return false;
      case EventQueue::Result::kFull:
        if (!wait_for_space(if_full)) return true;
    }
  }
}

void AsyncEventWriter::wake_writer() {
  MutexLock lock(mutex_);  // the writer thread is not between looking at the queue and waiting
  work_.notify_one();
}

// False: there is none, and nobody is to wait for it, so one record was counted as dropped.
bool AsyncEventWriter::wait_for_space(IfFull if_full) {
  MutexLock lock(mutex_);
  const bool may_wait = if_full == IfFull::kWait;
  while (may_wait && queue_.is_open() && !failing_ && queue_.is_full()) clock_.wait_for(space_, mutex_, kLongWait);
  const bool drop = queue_.is_open() && queue_.is_full();
  if (!drop) return true;
  ++dropped_;
  if (failing_ && ++dropped_while_failing_ == 1) {
    drop_is_news_ = true;
    work_.notify_one();
  }
  return false;
}

bool AsyncEventWriter::flush() {
  MutexLock lock(mutex_);
  if (!queue_.is_open()) return false;
  const uint64_t mine = ++flushes_asked_;
  work_.notify_one();
  while (flushes_served_ < mine) clock_.wait_for(done_, mutex_, kLongWait);
  if (flush_error_) std::rethrow_exception(flush_error_);
  return true;
}

void AsyncEventWriter::close() {
  MutexLock lifecycle(lifecycle_);
  {
    MutexLock lock(mutex_);
    if (!queue_.is_open()) return;
    queue_.close();
  }
  work_.notify_one();
  space_.notify_all();
  thread_.join();

  MutexLock lock(mutex_);
  const uint64_t dropped = dropped_ - dropped_before_;
  if (!flush_error_ && dropped == 0) return;
  const Code code = flush_error_ ? code_of(flush_error_) : Code::kDataLoss;
  throw_error(code, fmt::format("close event files in {}: {} events dropped: {}", directory_, dropped, last_error_));
}

void AsyncEventWriter::reopen() {
  MutexLock lifecycle(lifecycle_);
  if (!is_closed()) return;
  flush_due_.reset();
  failures_ = 0;
  if (!options_.filename_suffix.empty()) open_file();
  {
    MutexLock lock(mutex_);
    queue_.open();
    failing_ = false;
    dropped_before_ = dropped_;
    dropped_while_failing_ = 0;
  }
  thread_ = NamedThread("lh-events", [this] { run(); });
}

std::string AsyncEventWriter::last_error() const {
  MutexLock lock(mutex_);
  return last_error_;
}

uint64_t AsyncEventWriter::dropped_events() const {
  MutexLock lock(mutex_);
  return dropped_;
}

void AsyncEventWriter::run() {
  for (bool is_last = false; !is_last;) {
    const Work work = wait_for_work();
    is_last = work.is_last;
    if (work.tells_of_drop) log_drop();
    if (!work.is_due) continue;
    std::exception_ptr error = write_all();
    if (is_last) error = finish(error);
    report(work, error);
  }
}

AsyncEventWriter::Work AsyncEventWriter::wait_for_work() {
  MutexLock lock(mutex_);
  for (;;) {
    const Seconds now = clock_.now();
    if (queue_.events() > 0 && !flush_due_) flush_due_ = now + options_.flush_secs;
    const bool is_due = is_ready(now), tells_of_drop = std::exchange(drop_is_news_, false);
    if (is_due || tells_of_drop) return {flushes_asked_, !queue_.is_open(), tells_of_drop, is_due};
    clock_.wait_for(work_, mutex_, time_to_wait(now));
  }
}

bool AsyncEventWriter::is_ready(Seconds now) const {
  if (!queue_.is_open() || flushes_asked_ > flushes_served_) return true;
  if (batch_.events + queue_.events() == 0) return false;
  if (failing_) return now >= next_attempt_;
  return !file_ || queue_.is_large() || now >= *flush_due_;
}

Seconds AsyncEventWriter::time_to_wait(Seconds now) const {
  if (batch_.events + queue_.events() == 0) return kLongWait;
  return (failing_ ? next_attempt_ : *flush_due_) - now;
}

// What waited when it was called is in the kernel's hands afterwards, unless it returns an error.
std::exception_ptr AsyncEventWriter::write_all() {
  try {
    write_batch();
    take_queue();
    write_batch();
    note_success();
    return nullptr;
  } catch (...) {
    note_failure(message_of(std::current_exception()));
    return std::current_exception();
  }
}

void AsyncEventWriter::take_queue() {
  flush_due_.reset();
  batch_.events += queue_.take(batch_.records);
  MutexLock lock(mutex_);
  space_.notify_all();
}

void AsyncEventWriter::write_batch() {
  if (batch_.events == 0) return;
  check_directory_owner(files_, join_path(directory_, "events"));
  if (!file_) open_file();
  file_->append(batch_.records);
  batch_.clear();
}

void AsyncEventWriter::open_file() {
  file_ = std::make_unique<EventWriter>(files_, clock_, directory_, options_.filename_suffix);
}

void AsyncEventWriter::note_failure(const std::string& message) {
  if (file_) file_->abandon();
  file_.reset();
  next_attempt_ = clock_.now() + options_.retry_secs;
  ++failures_;
  bool is_news;
  {
    MutexLock lock(mutex_);
    is_news = !std::exchange(failing_, true);
    last_error_ = message;
  }
  ++disruptions_;
  space_.notify_all();
  if (is_news)
    log_error("event files in {}: {}; trying a new file every {} s, and what fails next is not logged until it works",
              directory_, message, options_.retry_secs.count());
}

void AsyncEventWriter::note_success() {
  const int failures = std::exchange(failures_, 0);
  uint64_t dropped;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(failing_, false)) return;
    dropped = std::exchange(dropped_while_failing_, 0);
  }
  ++disruptions_;
  log_warning("event files in {}: writing again, after {} attempts that failed; {} events were dropped meanwhile",
              directory_, failures, dropped);
}

// Whoever adds may be a log sink, which must not log.
void AsyncEventWriter::log_drop() const {
  log_error("event files in {}: no more events fit into memory, and new ones are dropped", directory_);
}

// Gets what is left to the disk, with a second try where the first failed, and returns what stood in the way.
std::exception_ptr AsyncEventWriter::finish(std::exception_ptr error) {
  if (error) error = write_all();
  if (error) take_queue();
  {
    MutexLock lock(mutex_);
    dropped_ += batch_.events;
  }
  batch_.clear();
  if (error || !file_) return error;
  try {
    std::exchange(file_, nullptr)->close();
  } catch (...) {
    error = std::current_exception();
    note_failure(message_of(error));
  }
  return error;
}

void AsyncEventWriter::report(const Work& work, const std::exception_ptr& error) {
  MutexLock lock(mutex_);
  flushes_served_ = work.flush;
  flush_error_ = error;
  if (work.is_last) flushes_served_ = flushes_asked_;
  done_.notify_all();
}

}  // namespace longhaul
