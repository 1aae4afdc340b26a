#include "longhaul/train/checkpointing/checkpoint_mirror.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/directory/crash_leftovers.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/retention/early_deletions.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/io/bucket_files.h"
#include "longhaul/io/canonical_directory.h"
#include "longhaul/io/directory_lock.h"
#include "longhaul/train/checkpointing/mirror_list.h"
#include "longhaul/train/coordination/chief_lock.h"
#include "longhaul/train/saved_state/nan_watch.h"

namespace longhaul {
namespace {

MirrorOptions completed(MirrorOptions options, const std::string& directory, Clock& clock) {
  check_mirror(options, directory);
  options.directory = absolute_directory(options.directory);
  if (!options.attempts) options.attempts = default_mirror_attempts(clock);
  return options;
}

Retention retention_of(const MirrorOptions& options) {
  return {.max_to_keep = options.max_to_keep, .keep_checkpoint_every_n_hours = options.keep_checkpoint_every_n_hours};
}

}  // namespace

void check_mirror(const MirrorOptions& options, const std::string& directory) {
  const std::string mirror = absolute_directory(options.directory), mirrored = absolute_directory(directory);
  if (mirror.empty() || mirrored.empty() || canonical_prefix(mirror) != canonical_prefix(mirrored)) return;
  throw InvalidArgumentError(
      fmt::format("the mirror of {} is to be {}, which is the same directory: it needs another, on another disk",
                  mirrored, mirror));
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
        mirror_files_(files, {.renames = options_.renames, .syncs = options_.syncs}) {}

  void add(const std::string& prefix);
  SaveStatus status() const { return options_.attempts->status(); }
  void finish(Seconds timeout);
  void run();

 private:
  std::string next();
  std::string wait_for_the_last(Seconds timeout);
  void try_to_copy(const std::string& from);
  void copy(const std::string& from);
  std::optional<uint64_t> copy_files(const std::string& from, const std::string& to);
  void take_mirror();
  void make_mirror();
  void leave_if_lost();
  void take_over_list();
  void check_wanted() const;
  void check_directory() const;
  void check_owners() const;
  bool has_lost_directory() const;
  bool is_away() const;
  bool is_gone(const std::string& prefix) const;
  bool is_damaged(const std::string& prefix) const;
  void succeeded(const std::string& to);
  void failed(const std::string& from);
  void drop(const std::string& prefix);
  void abandon();
  ManagedCheckpoints::RecordOptions record_options(const std::string& from) const;

  std::string in_mirror(const std::string& prefix) const { return join_path(options_.directory, base_name(prefix)); }

  const std::string directory_;
  const MirrorOptions options_;
  FileSystem& files_;
  Clock& clock_;
  mutable BucketFiles mirror_files_;

  // The thread's.
  std::unique_ptr<ChiefLock> lock_;
  std::unique_ptr<ManagedCheckpoints> managed_;  // null: not known yet
  std::unique_ptr<EarlyDeletions> early_deletions_;
  bool has_been_made_ = false;
  bool has_list_ = false;  // written by this process

  mutable Mutex mutex_;
  CondVar changed_;
  std::string wanted_ GUARDED_BY(mutex_);        // the newest that is not there yet
  bool is_replaced_ GUARDED_BY(mutex_) = false;  // since it was last looked at: by another one of its name, perhaps
  bool is_finishing_ GUARDED_BY(mutex_) = false;
  bool is_abandoned_ GUARDED_BY(mutex_) = false;
};

void CheckpointMirror::Worker::add(const std::string& prefix) {
  const std::string path = absolute_directory(prefix);
  if (path.empty() || !lies_in(path, directory_)) return;
  MutexLock lock(mutex_);
  wanted_ = path;
  is_replaced_ = true;
  changed_.notify_all();
}

void CheckpointMirror::Worker::run() {
  for (std::string prefix = next(); !prefix.empty(); prefix = next()) try_to_copy(prefix);
  lock_.reset();
}

// Empty: there is nothing to do any more.
std::string CheckpointMirror::Worker::next() {
  constexpr Seconds kLong{3600};
  MutexLock lock(mutex_);
  while (!is_abandoned_) {
    const Seconds pause = wanted_.empty() ? kLong : options_.attempts->time_to_retry();
    if (wanted_.empty() && is_finishing_) break;
    if (pause <= Seconds{0}) {
      is_replaced_ = false;
      return wanted_;
    }
    clock_.wait_for(changed_, mutex_, pause);
  }
  return "";
}

void CheckpointMirror::Worker::finish(Seconds timeout) {
  const std::string missing = wait_for_the_last(timeout);
  if (missing.empty()) return;
  const std::string error = status().last_error;
  log_error("checkpoint {} is not in the mirror {}: {}", missing, options_.directory,
            error.empty() ? "there was no time" : error);
}

// Returns what is not there.
std::string CheckpointMirror::Worker::wait_for_the_last(Seconds timeout) {
  MutexLock lock(mutex_);
  is_finishing_ = true;
  changed_.notify_all();
  const Seconds deadline = clock_.now() + timeout;
  while (!wanted_.empty() && !is_abandoned_ && clock_.now() < deadline) {
    clock_.wait_for(changed_, mutex_, deadline - clock_.now());
  }
  is_abandoned_ = true;
  changed_.notify_all();
  return wanted_;
}

void CheckpointMirror::Worker::try_to_copy(const std::string& from) {
  try {
    copy(from);
    drop(from);
  } catch (const CancelledError&) {
    log_debug("the copy of {} is given up", from);
  } catch (const DirectoryLostError& error) {
    failed(from);
    if (has_lost_directory()) abandon();
  } catch (const std::exception&) {
    failed(from);
  }
}

void CheckpointMirror::Worker::copy(const std::string& from) {
  const std::string to = in_mirror(from);
  const Seconds start = clock_.now();
  take_mirror();
  const std::optional<uint64_t> bytes = copy_files(from, to);
  check_owners();
  managed_->record(to, record_options(from));
  has_list_ = true;
  if (bytes) {
    log_info("checkpoint {} is mirrored as {}: {} in {:.1f} s", from, to, size_text(*bytes),
             (clock_.now() - start).count());
  }
  succeeded(to);
}

// Returns how many bytes it wrote; nullopt: it was there. A disk that is full although it had said otherwise has room
// for the next attempt.
std::optional<uint64_t> CheckpointMirror::Worker::copy_files(const std::string& from, const std::string& to) {
  uint64_t bytes = 0;
  CheckpointCopyOptions copying{.from_files = &files_,
                                .to_files = &mirror_files_,
                                .max_bytes_per_second = options_.max_bytes_per_second,
                                .in_place = !options_.renames,
                                .before_piece = [this] { check_wanted(); },
                                .before_change = [this] { check_owners(); },
                                .clock = &clock_};
  copying.before_first_byte = [&](uint64_t all) {
    bytes = all;
    early_deletions_->make_room(to, all, record_options(from));
  };
  constexpr auto kCopy = EarlyDeletions::For::kCheckpoint;
  try {
    const bool is_copied = copy_checkpoint(from, to, copying);
    early_deletions_->was_enough(kCopy);
    return is_copied ? std::optional(bytes) : std::nullopt;
  } catch (const ResourceExhaustedError& error) {
    early_deletions_->make_room_after(error, kCopy, to, bytes, record_options(from));
    throw;
  }
}

// For a copy of `from`, which says what is to be held.
ManagedCheckpoints::RecordOptions CheckpointMirror::Worker::record_options(const std::string& from) const {
  const std::string held = last_without_nan(files_, from);
  return {.relative_paths = true, .held = held.empty() ? "" : in_mirror(held), .before_deletion = [this] {
            check_owners();
          }};
}

void CheckpointMirror::Worker::take_mirror() {
  check_directory();
  leave_if_lost();
  make_mirror();
  if (!lock_ && options_.lock) {
    lock_ =
        std::make_unique<ChiefLock>(options_.directory, DirectoryLockOptions{.files = &mirror_files_,
                                                                             .clock = &clock_,
                                                                             .limit = options_.lock_limit,
                                                                             .use_flock = options_.lock_with_flock});
  }
  if (!managed_) take_over_list();
}

// Once. What is not there later was unmounted: on the disk below it a mirror would be none, and fill that up. Where no
// lock tells which directory it is, the list does that was written there.
void CheckpointMirror::Worker::make_mirror() {
  if (!has_been_made_) {
    mirror_files_.make_directories(options_.directory);
    has_been_made_ = true;
  }
  if (lock_) return check_directory_owner(mirror_files_, join_path(options_.directory, kDefaultStateFile));
  const bool is_there = mirror_files_.is_directory(options_.directory) &&
                        (!has_list_ || mirror_files_.exists(join_path(options_.directory, kDefaultStateFile)));
  if (is_there) return;
  throw DirectoryAwayError(
      fmt::format("{}: the mirror is not there, unmounted or moved perhaps. Nothing is written there until it is back",
                  options_.directory));
}

void CheckpointMirror::Worker::leave_if_lost() {
  try {
    if (lock_) lock_->raise_if_lost();
  } catch (const DirectoryLostError&) {
    lock_.reset();
    managed_.reset();
    throw;
  }
}

void CheckpointMirror::Worker::take_over_list() {
  if (lock_) {
    remove_crash_leftovers(mirror_files_, options_.directory, "");
    data_without_index(mirror_files_, options_.directory, "");  // a warning names it
  }
  clear_incoming(mirror_files_, options_.directory);
  CheckpointState state = read_mirror_list(mirror_files_, options_);
  for (std::string& path : state.all_model_checkpoint_paths) path = in_mirror(path);
  for (std::string& path : state.paths_marked_for_deletion) path = in_mirror(path);
  auto managed = std::make_unique<ManagedCheckpoints>(retention_of(options_), mirror_files_, clock_);
  managed->recover(state);
  managed_ = std::move(managed);
  early_deletions_ = std::make_unique<EarlyDeletions>(mirror_files_, *managed_);
}

void CheckpointMirror::Worker::check_wanted() const {
  MutexLock lock(mutex_);
  if (is_abandoned_) throw CancelledError("the mirror is closed");
}

void CheckpointMirror::Worker::check_directory() const {
  check_directory_owner(files_, join_path(directory_, kDefaultStateFile));
}

void CheckpointMirror::Worker::check_owners() const {
  check_directory();
  if (options_.lock) check_directory_owner(mirror_files_, join_path(options_.directory, kDefaultStateFile));
}

bool CheckpointMirror::Worker::has_lost_directory() const {
  try {
    check_directory();
  } catch (const DirectoryLostError&) {
    return true;
  } catch (const Error&) {
  }
  return false;
}

bool CheckpointMirror::Worker::is_away() const {
  try {
    check_directory();
  } catch (const Error&) {
    return true;
  }
  return false;
}

bool CheckpointMirror::Worker::is_gone(const std::string& prefix) const {
  try {
    return !checkpoint_exists(files_, prefix);
  } catch (const Error&) {
    return false;  // not known
  }
}

bool CheckpointMirror::Worker::is_damaged(const std::string& prefix) const {
  try {
    return !BundleReader(files_, prefix).verify().empty();
  } catch (const DataLossError&) {
    return true;
  } catch (const Error&) {
    return false;
  }
}

void CheckpointMirror::Worker::succeeded(const std::string& to) {
  const int failures = options_.attempts->succeeded(to);
  if (failures > 0) log_info("the mirror {} works again, after {} failures", options_.directory, failures);
}

// Of the exception that is being handled.
void CheckpointMirror::Worker::failed(const std::string& from) {
  const std::exception_ptr error = std::current_exception();
  if (!is_away() && is_gone(from)) {
    log_info("checkpoint {} was deleted before it was mirrored", from);
    return drop(from);
  }
  const int failures = options_.attempts->failed(error);
  if (code_of(error) == Code::kDataLoss && is_damaged(from)) {
    log_error("checkpoint {} is damaged, and is not mirrored: {}", from, message_of(error));
    return drop(from);
  }
  if (failures > 1) return log_debug("the mirror {} still fails: {}", options_.directory, message_of(error));
  log_error(
      "checkpoint {} could not be mirrored to {}, and is tried again while the training goes on; what fails next is "
      "not logged until it works: {}",
      from, options_.directory, message_of(error));
}

// It needs no copy any more, unless a newer one has come.
void CheckpointMirror::Worker::drop(const std::string& prefix) {
  MutexLock lock(mutex_);
  if (wanted_ == prefix && !is_replaced_) wanted_.clear();
  changed_.notify_all();
}

void CheckpointMirror::Worker::abandon() {
  MutexLock lock(mutex_);
  is_abandoned_ = true;
  changed_.notify_all();
}

CheckpointMirror::CheckpointMirror(const std::string& directory, MirrorOptions options, FileSystem& files, Clock& clock)
    : coord_({.clock = &clock}),
      timeout_(options.end_timeout),
      worker_(std::make_shared<Worker>(directory, std::move(options), files, clock)) {
  coord_.start_thread("lh-mirror", [worker = worker_] { worker->run(); });
}

CheckpointMirror::~CheckpointMirror() {
  try {
    close();
  } catch (const std::exception& error) {
    log_error("the mirror was not closed well: {}", error.what());
  }
}

void CheckpointMirror::add(const std::string& prefix) {
  worker_->add(prefix);
}

SaveStatus CheckpointMirror::status() const {
  return worker_->status();
}

void CheckpointMirror::close(std::optional<Seconds> time_left) {
  constexpr Seconds kToComeToAnEnd{2};
  if (std::exchange(is_closed_, true)) return;
  worker_->finish(std::min(timeout_, time_left.value_or(timeout_)));
  coord_.request_stop();
  coord_.join({.stop_grace = kToComeToAnEnd, .ignore_live_threads = true});
}

}  // namespace longhaul
