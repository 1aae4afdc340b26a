#include "longhaul/train/checkpointing/mirror_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/checkpoint_copy.h"
#include "longhaul/checkpoint/directory/crash_leftovers.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/files/paced_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/checkpointing/mirror_list.h"
#include "longhaul/train/saved_state/nan_watch.h"

namespace longhaul {
namespace {

Retention retention_of(const MirrorOptions& options) {
  return {.max_to_keep = options.max_to_keep, .keep_checkpoint_every_n_hours = options.keep_checkpoint_every_n_hours};
}

// False: a part is missing or damaged. Throws what keeps it from being read.
bool is_intact_copy(FileSystem& files, const std::string& prefix) {
  try {
    return checkpoint_exists(files, prefix) && BundleReader(files, prefix).verify().empty();
  } catch (const DataLossError&) {
    return false;
  }
}

bool lists(const ManagedCheckpoints& managed, const std::string& name) {
  const std::vector<std::string> listed = managed.prefixes();
  return std::any_of(listed.begin(), listed.end(),
                     [&](const std::string& prefix) { return base_name(prefix) == name; });
}

void warn_of_folders(const std::string& directory, const std::vector<std::string>& theirs) {
  constexpr size_t kMostShown = 2000;
  if (theirs.empty()) return;
  log_warning(
      "mirror {}: the folder {} is for copies under way, but contains folders, which no copy makes. They are kept, and "
      "copies go on, except one with a file of the same name; move them elsewhere: {}",
      directory, kIncoming, excerpt(fmt::format("{}", fmt::join(theirs, ", ")), kMostShown));
}

}  // namespace

MirrorDirectory::MirrorDirectory(std::string mirrored, const MirrorOptions& options, FileSystem& files, Clock& clock)
    : mirrored_(std::move(mirrored)),
      options_(options),
      files_(files),
      clock_(clock),
      mirror_files_(files, {.renames = options_.renames, .syncs = options_.syncs}) {}

std::string MirrorDirectory::path_of(const std::string& prefix) const {
  return join_path(options_.directory, base_name(prefix));
}

void MirrorDirectory::take(const Pause& pause) {
  check_mirrored();
  leave_if_lost();
  make();
  if (!lock_ && options_.lock.lock) {
    lock_ =
        std::make_unique<ChiefLock>(options_.directory, DirectoryLockOptions{.files = &mirror_files_,
                                                                             .clock = &clock_,
                                                                             .limit = options_.lock.lease_secs,
                                                                             .use_flock = options_.lock.with_flock});
  }
  if (!managed_) take_over_list(pause);
}

// Once. What is not there later was unmounted: on the disk below it a mirror would be none, and fill that up. Where no
// lock tells which directory it is, the list does that was written there.
void MirrorDirectory::make() {
  if (!has_been_made_) {
    mirror_files_.make_directories(options_.directory);
    has_been_made_ = true;
  }
  if (lock_) return check_directory_owner(mirror_files_, join_path(options_.directory, kDefaultStateFile));
  const bool is_there = mirror_files_.is_directory(options_.directory) &&
                        (!has_list_ || mirror_files_.exists(join_path(options_.directory, kDefaultStateFile)));
  if (is_there) return;
  throw DirectoryAwayError(fmt::format(
      "{}: the mirror is missing; it may have been unmounted or moved. Nothing is written there until it is back",
      options_.directory));
}

void MirrorDirectory::leave_if_lost() {
  try {
    if (lock_) lock_->raise_if_lost();
  } catch (const DirectoryLostError&) {
    lock_.reset();
    managed_.reset();
    throw;
  }
}

void MirrorDirectory::take_over_list(const Pause& pause) {
  if (lock_) {
    remove_crash_leftovers(mirror_files_, options_.directory, "");
    data_without_index(mirror_files_, options_.directory, "");  // a warning names it
  }
  const std::vector<std::string> theirs = clear_incoming(mirror_files_, options_.directory);
  CheckpointState state = read_mirror_list(mirror_files_, options_);
  for (std::string& path : state.all_model_checkpoint_paths) path = path_of(path);
  for (std::string& path : state.paths_marked_for_deletion) path = path_of(path);
  auto managed = std::make_unique<ManagedCheckpoints>(retention_of(options_), mirror_files_, clock_);
  managed->recover(state);
  list_what_was_copied(*managed, pause);
  managed_ = std::move(managed);
  early_deletions_ = std::make_unique<EarlyDeletions>(mirror_files_, *managed_);
  warn_of_folders(options_.directory, theirs);
}

// What cannot be read is tried again, once. Then the mirror goes on without it: it may never be read.
void MirrorDirectory::list_what_was_copied(ManagedCheckpoints& managed, const Pause& pause) {
  try {
    const std::string name = read_unlisted(mirror_files_, options_.directory);
    if (name.empty()) return;
    if (!lists(managed, name)) list_or_remove(managed, path_of(name), pause);
    remove_unlisted(mirror_files_, options_.directory);
    failed_listings_ = 0;
  } catch (...) {
    pause(Seconds{0});  // if it throws, or the next one, that is the cause
    check_owners();
    if (++failed_listings_ == 1) throw;
    if (failed_listings_ > 2) return;
    log_warning("mirror {}: a copy that a killed process had not listed may be left there, not listed: {}",
                options_.directory, message_of(std::current_exception()));
  }
}

// After a kill between the copy and its list, or a list that could not be written. In place, a copy may be committed
// and damaged. Of one that was being removed, only the index may be left.
void MirrorDirectory::list_or_remove(ManagedCheckpoints& managed, const std::string& copied, const Pause& pause) const {
  if (!checkpoint_exists(mirror_files_, copied) && !committed_prefix(mirror_files_, copied)) return;
  check_owners();
  PacedFiles paced(mirror_files_, options_.max_bytes_per_second, [&] { pause(Seconds{0}); }, clock_, pause);
  if (is_intact_copy(paced, copied)) {
    log_info("checkpoint {} was mirrored but not listed, probably by a killed process, and is listed now", copied);
    managed.record(copied, record_options(mirror_files_, copied));
  } else {
    log_warning("checkpoint {} is an incomplete copy, probably of a killed process, and is removed", copied);
    remove_checkpoint(mirror_files_, copied);
  }
}

// The mirror works without the note, which is for a kill before the copy is listed.
void MirrorDirectory::note_unlisted(const std::string& name) {
  try {
    write_unlisted(mirror_files_, options_.directory, name);
    failed_listings_ = 0;
  } catch (...) {
    log_debug("mirror {}: the copy cannot be noted as not listed: {}", options_.directory,
              message_of(std::current_exception()));
  }
}

void MirrorDirectory::remove_note() const {
  try {
    remove_unlisted(mirror_files_, options_.directory);
  } catch (...) {
    log_debug("mirror {}: the note of a copy that is not listed stays: {}", options_.directory,
              message_of(std::current_exception()));
  }
}

// A disk that is full although it had said otherwise has room for the next attempt.
std::optional<uint64_t> MirrorDirectory::copy(const std::string& from, const Pause& pause) {
  const std::string to = path_of(from);
  uint64_t bytes = 0;
  CheckpointCopyOptions copying{.from_files = &files_,
                                .to_files = &mirror_files_,
                                .max_bytes_per_second = options_.max_bytes_per_second,
                                .in_place = !options_.renames,
                                .before_piece = [&] { pause(Seconds{0}); },
                                .pause = pause,
                                .before_change = [this] { check_owners(); },
                                .clock = &clock_};
  copying.before_first_byte = [&](uint64_t all) {
    bytes = all;
    early_deletions_->make_room(to, all, record_options(files_, from));
    check_owners();
    list_what_was_copied(*managed_, pause);
    note_unlisted(base_name(to));
  };
  constexpr auto kCopy = EarlyDeletions::For::kCheckpoint;
  try {
    const bool is_copied = copy_checkpoint(from, to, copying);
    early_deletions_->was_enough(kCopy);
    return is_copied ? std::optional(bytes) : std::nullopt;
  } catch (const ResourceExhaustedError& error) {
    early_deletions_->make_room_after(error, kCopy, to, bytes, record_options(files_, from));
    throw;
  }
}

void MirrorDirectory::record(const std::string& from) {
  check_owners();
  managed_->record(path_of(from), record_options(files_, from));
  remove_note();
  has_list_ = true;
}

// For a copy of `prefix`, or the copy itself, which says what is to be held.
ManagedCheckpoints::RecordOptions MirrorDirectory::record_options(FileSystem& files, const std::string& prefix) const {
  const std::string held = last_without_nan(files, prefix);
  return {
      .relative_paths = true, .held = held.empty() ? "" : path_of(held), .before_deletion = [this] { check_owners(); }};
}

void MirrorDirectory::check_mirrored() const {
  check_directory_owner(files_, join_path(mirrored_, kDefaultStateFile));
}

void MirrorDirectory::check_owners() const {
  check_mirrored();
  if (options_.lock.lock) check_directory_owner(mirror_files_, join_path(options_.directory, kDefaultStateFile));
}

bool MirrorDirectory::has_lost_mirrored() const {
  try {
    check_mirrored();
  } catch (const DirectoryLostError&) {
    return true;
  } catch (const Error&) {
  }
  return false;
}

bool MirrorDirectory::is_mirrored_away() const {
  try {
    check_mirrored();
  } catch (const Error&) {
    return true;
  }
  return false;
}

}  // namespace longhaul
