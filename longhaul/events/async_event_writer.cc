#include "longhaul/events/async_event_writer.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {

void AsyncEventWriter::Batch::clear() {
  records.clear();
  events = 0;
}

AsyncEventWriter::AsyncEventWriter(std::string directory, FileWriterOptions options)
    : directory_(std::move(directory)),
      options_(std::move(options)),
      files_(options_.files ? *options_.files : FileSystem::real()),
      clock_(options_.clock ? *options_.clock : Clock::real()),
      handover_(options_.max_queue, options_.max_queue_bytes, options_.flush_secs, clock_) {
  reopen();
}

AsyncEventWriter::~AsyncEventWriter() {
  try {
    close();
  } catch (...) {
    log_error("{}", message_of(std::current_exception()));
  }
}

void AsyncEventWriter::close() {
  MutexLock lifecycle(lifecycle_);
  if (!handover_.close()) return;
  thread_.join();
  const EventHandover::Result result = handover_.result();
  if (!result.error && result.dropped == 0) return;
  const Code code = result.error ? code_of(result.error) : Code::kDataLoss;
  throw_error(code, fmt::format("close event files in {}: {} events dropped: {}", directory_, result.dropped,
                                result.last_error));
}

void AsyncEventWriter::reopen() {
  MutexLock lifecycle(lifecycle_);
  if (!is_closed()) return;
  failures_ = 0;
  if (!options_.filename_suffix.empty()) open_file();
  handover_.open();
  try {
    thread_ = NamedThread("lh-events", [this] { run(); });
  } catch (...) {
    handover_.close();
    run();  // once, for those who have added or flushed meanwhile
    throw;
  }
}

void AsyncEventWriter::run() {
  for (bool is_last = false; !is_last;) {
    const EventHandover::Work work = handover_.wait_for_work(batch_.events > 0, file_ != nullptr);
    is_last = work.is_last;
    if (work.tells_of_drop) log_drop();
    if (!work.is_due) continue;
    std::exception_ptr error = write_all();
    if (is_last) error = finish(error);
    handover_.report(work, error);
  }
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
  batch_.events += handover_.take(batch_.records);
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
  ++failures_;
  if (handover_.failed(message, clock_.now() + options_.retry_secs))
    log_error("event files in {}: {}; trying a new file every {} s; further failures are not logged until one works",
              directory_, message, options_.retry_secs.count());
}

void AsyncEventWriter::note_success() {
  const int failures = std::exchange(failures_, 0);
  const std::optional<uint64_t> dropped = handover_.succeeded();
  if (!dropped) return;
  log_warning("event files in {}: writing again after {} failed attempts; {} events were dropped meanwhile", directory_,
              failures, *dropped);
}

// Whoever adds may be a log sink, which must not log.
void AsyncEventWriter::log_drop() const {
  log_error("event files in {}: no more events fit into memory; new events are dropped", directory_);
}

// Gets what is left to the disk, with a second try where the first failed, and returns what stood in the way.
std::exception_ptr AsyncEventWriter::finish(std::exception_ptr error) {
  if (error) error = write_all();
  if (error) take_queue();
  handover_.count_dropped(batch_.events);
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

}  // namespace longhaul
