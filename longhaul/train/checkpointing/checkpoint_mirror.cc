#include "longhaul/train/checkpointing/checkpoint_mirror.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/files/paced_files.h"
#include "longhaul/io/lock/directory_id.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/checkpointing/mirror_directory.h"
#include "longhaul/train/checkpointing/mirror_queue.h"
#include "longhaul/train/coordination/checked_options.h"

namespace longhaul {
namespace {

void check_numbers(const MirrorOptions& options) {
  check_not_negative("mirror.max_to_keep", options.max_to_keep);
  check_not_negative("mirror.keep_checkpoint_every_n_hours", options.keep_checkpoint_every_n_hours);
  check_not_negative("mirror.max_bytes_per_second", options.max_bytes_per_second);
  check_not_negative("mirror.end_timeout", options.end_timeout);
  check_not_negative("mirror.start_timeout", options.start_timeout);
  check_lock(options.lock, "mirror.lock");
}

bool has_settings(const MirrorOptions& options) {
  const MirrorOptions unset;
  return options.max_to_keep != unset.max_to_keep ||
         options.keep_checkpoint_every_n_hours != unset.keep_checkpoint_every_n_hours ||
         options.max_bytes_per_second != unset.max_bytes_per_second || options.renames != unset.renames ||
         options.syncs != unset.syncs;
}

// Links and bind mounts give one directory several names.
bool is_same_directory(const std::string& a, const std::string& b) {
  if (canonical_prefix(a) == canonical_prefix(b)) return true;
  const std::optional<DirectoryId> id = directory_id(a);
  return id && id == directory_id(b);
}

MirrorOptions completed(MirrorOptions options, const std::string& directory, Clock& clock) {
  check_mirror(options, directory);
  options.directory = absolute_directory(options.directory);
  if (!options.attempts) options.attempts = default_mirror_attempts(clock);
  return options;
}

}  // namespace

void check_mirror(const MirrorOptions& options, const std::string& directory) {
  check_numbers(options);
  const std::string mirror = absolute_directory(options.directory), mirrored = absolute_directory(directory);
  if (mirror.empty() && has_settings(options)) {
    log_warning("mirror options are set, but mirror.directory is empty, so nothing is mirrored");
  }
  if (mirror.empty() || mirrored.empty() || !is_same_directory(mirror, mirrored)) return;
  throw InvalidArgumentError(fmt::format(
      "the mirror of {} is the same directory ({}): choose another one, on another disk", mirrored, mirror));
}

std::shared_ptr<SaveAttempts> default_mirror_attempts(Clock& clock) {
  return std::make_shared<SaveAttempts>(
      SaveAttemptsOptions{.first_wait = Seconds{5}, .longest_wait = Seconds{300}, .clock = &clock});
}

// What the thread keeps, however long it may live.
class CheckpointMirror::Worker {
 public:
  Worker(const std::string& directory, MirrorOptions options, FileSystem& files, Clock& clock)
      : directory_(absolute_directory(directory)),
        options_(completed(std::move(options), directory_, clock)),
        files_(files),
        clock_(clock),
        queue_(*options_.attempts, clock),
        mirror_(directory_, options_, files, clock) {}

  void add(const std::string& prefix);
  SaveStatus status() const { return options_.attempts->status(); }
  void finish(const Deadline* deadline);
  void run();

 private:
  void try_to_copy(const std::string& from);
  void copy(const std::string& from);
  bool is_gone(const std::string& prefix) const;
  bool is_damaged(const std::string& prefix);
  void failed(const std::string& from);

  const std::string directory_;
  const MirrorOptions options_;
  FileSystem& files_;
  Clock& clock_;
  MirrorQueue queue_;
  MirrorDirectory mirror_;  // the thread's
};

void CheckpointMirror::Worker::add(const std::string& prefix) {
  const std::string path = absolute_directory(prefix);
  if (!path.empty() && lies_in(path, directory_)) queue_.add(path);
}

void CheckpointMirror::Worker::run() {
  for (std::string prefix = queue_.next(); !prefix.empty(); prefix = queue_.next()) try_to_copy(prefix);
  mirror_.give_back();
}

void CheckpointMirror::Worker::finish(const Deadline* deadline) {
  const std::string missing = queue_.finish(options_.end_timeout, deadline);
  if (missing.empty()) return;
  const std::string error = status().last_error;
  log_error("checkpoint {} is not in the mirror {}: {}", missing, options_.directory,
            error.empty() ? "no time was left" : error);
}

void CheckpointMirror::Worker::try_to_copy(const std::string& from) {
  try {
    copy(from);
    queue_.drop(from);
  } catch (const CancelledError&) {
    log_debug("the copy of {} was cancelled", from);
  } catch (const DirectoryLostError& error) {
    failed(from);
    if (mirror_.has_lost_mirrored()) queue_.abandon();
  } catch (...) {  // also of odd types, from a program's file system
    failed(from);
  }
}

void CheckpointMirror::Worker::copy(const std::string& from) {
  const std::string to = mirror_.path_of(from);
  const Seconds start = clock_.now();
  const Pause pause = [this](Seconds time) { return queue_.pause(time); };
  mirror_.take(pause);
  const std::optional<uint64_t> bytes = mirror_.copy(from, pause);
  mirror_.record(from);
  if (bytes) {
    log_info("checkpoint {} was mirrored as {}: {} in {:.1f} s", from, to, size_text(*bytes),
             (clock_.now() - start).count());
  }
  const int failures = options_.attempts->succeeded(to);
  if (failures > 0) log_info("the mirror {} works again after {} failures", options_.directory, failures);
}

bool CheckpointMirror::Worker::is_gone(const std::string& prefix) const {
  try {
    return !checkpoint_exists(files_, prefix);
  } catch (...) {
    return false;  // not known
  }
}

bool CheckpointMirror::Worker::is_damaged(const std::string& prefix) {
  try {
    const Pause pause = [this](Seconds time) { return queue_.pause(time); };
    PacedFiles paced(files_, options_.max_bytes_per_second, [&] { pause(Seconds{0}); }, clock_, pause);
    return !BundleReader(paced, prefix).verify().empty();
  } catch (const DataLossError&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Of the exception that is being handled.
void CheckpointMirror::Worker::failed(const std::string& from) {
  const std::exception_ptr error = std::current_exception();
  if (!mirror_.is_mirrored_away() && is_gone(from)) {
    log_info("checkpoint {} was deleted before it was mirrored", from);
    return queue_.drop(from);
  }
  const int failures = options_.attempts->failed(error);
  if (code_of(error) == Code::kDataLoss && is_damaged(from)) {
    log_error("checkpoint {} is damaged and is not mirrored: {}", from, message_of(error));
    return queue_.drop(from);
  }
  if (failures > 1) return log_debug("copies to the mirror {} still fail: {}", options_.directory, message_of(error));
  log_error(
      "checkpoint {} could not be mirrored to {}; the copy is retried while training continues, and further failures "
      "are not logged until one succeeds: {}",
      from, options_.directory, message_of(error));
}

CheckpointMirror::CheckpointMirror(const std::string& directory, MirrorOptions options, FileSystem& files, Clock& clock)
    : coord_({.clock = &clock}), worker_(std::make_shared<Worker>(directory, std::move(options), files, clock)) {
  coord_.start_thread("lh-mirror", [worker = worker_] { worker->run(); });
}

CheckpointMirror::~CheckpointMirror() {
  try {
    close();
  } catch (...) {
    log_error("the mirror could not be closed: {}", message_of(std::current_exception()));
  }
}

void CheckpointMirror::add(const std::string& prefix) {
  worker_->add(prefix);
}

SaveStatus CheckpointMirror::status() const {
  return worker_->status();
}

void CheckpointMirror::close(const Deadline* deadline) {
  constexpr Seconds kToComeToAnEnd{2};
  if (std::exchange(is_closed_, true)) return;
  worker_->finish(deadline);
  const Deadline::Notice notice(deadline, [this] { coord_.notify(); });
  coord_.request_stop();
  coord_.join(
      {.stop_grace = kToComeToAnEnd, .ignore_live_threads = true, .give_up_at = half_time(deadline, coord_.clock())});
}

}  // namespace longhaul
