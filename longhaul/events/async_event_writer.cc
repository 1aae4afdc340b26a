#include "longhaul/events/async_event_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/events/event_writer.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

void check_time(const char* name, Seconds time, bool is_right, const char* must) {
  if (is_right) return;
  throw InvalidArgumentError(fmt::format("FileWriterOptions::{} is {:g} s: it must be {}", name, time.count(), must));
}

// NaN is none of this. With it, or without a pause, the writer's thread would never rest.
FileWriterOptions checked(FileWriterOptions options) {
  check_time("hang_secs", options.hang_secs, options.hang_secs > Seconds{0}, "above 0");
  check_time("retry_secs", options.retry_secs, options.retry_secs > Seconds{0}, "above 0");
  check_time("flush_secs", options.flush_secs, options.flush_secs >= Seconds{0}, "0 or above");
  return options;
}

}  // namespace

// What the thread keeps, however long it may live.
class AsyncEventWriter::Worker {
 public:
  Worker(std::string directory, FileWriterOptions options)
      : directory_(std::move(directory)),
        options_(checked(std::move(options))),
        files_(options_.files ? *options_.files : FileSystem::real()),
        clock_(options_.clock ? *options_.clock : Clock::real()),
        handover_(options_.max_queue, options_.max_queue_bytes, options_.flush_secs, options_.hang_secs, clock_) {}

  const std::string& directory() const { return directory_; }
  EventHandover& handover() { return handover_; }

  void begin();  // while there is no thread
  void run();

 private:
  struct Batch {
    std::string records;
    size_t events = 0;
    void clear();
  };

  std::exception_ptr write_all();
  void write_batch();
  void append_batch();
  void take_queue();
  void open_file();
  void note_failure(const std::string& message);
  void note_success();
  void log_drop() const;
  std::exception_ptr finish(std::exception_ptr error);
  void note_return(const std::exception_ptr& error, size_t lost) const;

  const std::string directory_;
  const FileWriterOptions options_;
  FileSystem& files_;
  Clock& clock_;
  EventHandover handover_;

  // Used only by the writer thread while it runs.
  std::unique_ptr<EventWriter> file_;
  Batch batch_;       // being written; kept until the write succeeds
  int failures_ = 0;  // since writing last worked
};

void AsyncEventWriter::Worker::Batch::clear() {
  records.clear();
  events = 0;
}

void AsyncEventWriter::Worker::begin() {
  failures_ = 0;
  if (!options_.filename_suffix.empty() && !file_) open_file();
}

void AsyncEventWriter::Worker::run() {
  for (bool has_ended = false; !has_ended;) {
    const EventHandover::Work work = handover_.wait_for_work(batch_.events > 0, file_ != nullptr);
    if (work.tells_of_drop) log_drop();
    if (!work.is_due) continue;
    std::exception_ptr error = write_all();
    if (work.is_last) error = finish(error);
    handover_.report(work, error);
    has_ended = work.is_last && handover_.end();
  }
}

// What waited when it was called is in the kernel's hands afterwards, unless it returns an error.
std::exception_ptr AsyncEventWriter::Worker::write_all() {
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

void AsyncEventWriter::Worker::take_queue() {
  batch_.events += handover_.take(batch_.records);
}

// One that was left behind makes no file: the directory may have another chief by now.
void AsyncEventWriter::Worker::write_batch() {
  if (batch_.events == 0) return;
  handover_.begin_to("looking at " + directory_, batch_.events);
  check_directory_owner(files_, join_path(directory_, "events"));
  if (!file_ && handover_.is_left_behind()) {
    throw UnavailableError("the file system hung when the writer was closed, so no new file is made");
  }
  if (!file_) open_file();
  append_batch();
  batch_.clear();
}

// In pieces, so that a slow disk is not taken for one that hangs.
void AsyncEventWriter::Worker::append_batch() {
  constexpr size_t kPieceBytes = size_t{1} << 20;
  for (std::string_view rest = batch_.records; !rest.empty(); rest.remove_prefix(std::min(rest.size(), kPieceBytes))) {
    handover_.begin_to("writing to " + file_->path(), batch_.events);
    file_->append(rest.substr(0, kPieceBytes));
  }
}

void AsyncEventWriter::Worker::open_file() {
  handover_.begin_to("creating an event file in " + directory_, batch_.events);
  file_ = std::make_unique<EventWriter>(files_, clock_, directory_, options_.filename_suffix);
}

void AsyncEventWriter::Worker::note_failure(const std::string& message) {
  if (file_) file_->abandon();
  file_.reset();
  ++failures_;
  if (handover_.failed(message, clock_.now() + options_.retry_secs))
    log_error("event files in {}: {}; trying a new file every {} s; further failures are not logged until one works",
              directory_, message, options_.retry_secs.count());
}

void AsyncEventWriter::Worker::note_success() {
  const int failures = std::exchange(failures_, 0);
  const std::optional<uint64_t> dropped = handover_.succeeded();
  if (!dropped) return;
  log_warning("event files in {}: writing again after {} failed attempts; {} events were dropped meanwhile", directory_,
              failures, *dropped);
}

// Whoever adds may be a log sink, which must not log.
void AsyncEventWriter::Worker::log_drop() const {
  log_error("event files in {}: no more events fit into memory; new events are dropped", directory_);
}

// Gets what is left to the disk, with a second try where the first failed, and returns what stood in the way.
std::exception_ptr AsyncEventWriter::Worker::finish(std::exception_ptr error) {
  if (error) error = write_all();
  if (error) take_queue();
  handover_.count_dropped(batch_.events);
  const size_t lost = batch_.events;
  batch_.clear();
  if (!error && file_) {
    handover_.begin_to("syncing " + file_->path(), 0);
    try {
      std::exchange(file_, nullptr)->close();
    } catch (...) {
      error = std::current_exception();
      note_failure(message_of(error));
    }
  }
  if (handover_.is_left_behind()) note_return(error, lost);
  return error;
}

// Whoever closed it has not heard.
void AsyncEventWriter::Worker::note_return(const std::exception_ptr& error, size_t lost) const {
  if (!error) {
    log_warning("event files in {}: the file system works again, and the events that hung are written", directory_);
  } else {
    log_error("event files in {}: the file system no longer hangs, but {} events are lost: {}", directory_, lost,
              message_of(error));
  }
}

AsyncEventWriter::AsyncEventWriter(std::string directory, FileWriterOptions options)
    : worker_(std::make_shared<Worker>(std::move(directory), std::move(options))), handover_(worker_->handover()) {
  reopen();
}

AsyncEventWriter::~AsyncEventWriter() {
  try {
    close_before(nullptr);
  } catch (...) {
    log_error("{}", message_of(std::current_exception()));
  }
}

bool AsyncEventWriter::flush_before(const Deadline* deadline) {
  const EventHandover::Flush flushed = handover_.flush(deadline);
  if (flushed != EventHandover::Flush::kHangs) return flushed == EventHandover::Flush::kDone;
  const std::string text = fmt::format("flush event files in {}: {}", worker_->directory(), handover_.describe_hang());
  if (handover_.is_hang_news()) log_error("{}; they are written if it works again", text);
  throw UnavailableError(text);
}

void AsyncEventWriter::log_drops() {
  if (!handover_.is_hang_news()) return;
  log_error("event files in {}: {} They are written if it works again; new events are dropped until then",
            worker_->directory(), handover_.describe_hang());
}

// No lock is held while it lasts: whoever waits for the next one has a deadline of its own.
class AsyncEventWriter::Turn {
 public:
  Turn(AsyncEventWriter& writer, const char* what, const Deadline* deadline) : handover_(writer.handover_) {
    if (handover_.begin_turn(deadline)) return;
    throw UnavailableError(fmt::format(
        "{} event files in {}: nothing was done, since another thread's close() or reopen() still waits: {}", what,
        writer.worker_->directory(), handover_.describe_hang()));
  }
  ~Turn() { handover_.end_turn(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  EventHandover& handover_;
};

void AsyncEventWriter::keep_thread(NamedThread thread) {
  MutexLock lock(thread_mutex_);
  thread_ = std::move(thread);
}

NamedThread AsyncEventWriter::take_thread() {
  MutexLock lock(thread_mutex_);
  return std::exchange(thread_, NamedThread());
}

void AsyncEventWriter::close_before(const Deadline* deadline) {
  const Turn turn(*this, "close", deadline);
  if (!handover_.close()) return;
  NamedThread thread = take_thread();
  if (!handover_.wait_for_end(deadline)) leave_behind(std::move(thread));
  if (thread.joinable()) thread.join();
  const EventHandover::Result result = handover_.result();
  if (!result.error && result.dropped == 0) return;
  const Code code = result.error ? code_of(result.error) : Code::kDataLoss;
  throw_error(code, fmt::format("close event files in {}: {} events dropped: {}", worker_->directory(), result.dropped,
                                result.last_error));
}

void AsyncEventWriter::leave_behind(NamedThread thread) {
  if (thread.joinable()) thread.detach();
  throw UnavailableError(
      fmt::format("close event files in {}: {} The thread lh-events is left behind, and writes them if it works again",
                  worker_->directory(), handover_.describe_hang()));
}

void AsyncEventWriter::reopen() {
  const Turn turn(*this, "reopen", nullptr);
  if (!is_closed()) return;
  if (handover_.has_ended()) worker_->begin();
  if (!handover_.open()) return;
  try {
    keep_thread(NamedThread("lh-events", [worker = worker_] { worker->run(); }));
  } catch (...) {
    handover_.close();
    worker_->run();  // once, for those who have added or flushed meanwhile
    throw;
  }
}

}  // namespace longhaul
