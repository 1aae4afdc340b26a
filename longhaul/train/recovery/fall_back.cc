#include "longhaul/train/recovery/fall_back.h"

#include <fmt/format.h>

#include <new>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/crash_leftovers.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/io/lock/directory_claims.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/recovery/nothing_restored.h"
#include "longhaul/train/recovery/recovery_search.h"

namespace longhaul {
namespace {

bool is_damage(const Error& error) {
  return error.code() == Code::kDataLoss;
}

std::optional<SkipReason> reason_to_skip(const FallBackOptions& options, const std::string& prefix) {
  if (!options.skip_reason) return std::nullopt;
  std::optional<SkipReason> reason = options.skip_reason(prefix);
  if (reason) log_warning("checkpoint {} is skipped in favour of an older one: {}", prefix, reason->why);
  return reason;
}

// Errors of a place, not of what is in it.
bool is_out_of_reach(const Error& error) {
  const Code code = error.code();
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kPermissionDenied ||
         code == Code::kUnknown;
}

bool is_mirrored(const FallBackOptions& options, const std::string& prefix) {
  return !options.mirror.directory.empty() && lies_in(prefix, options.mirror.directory);
}

bool is_held(const std::string& directory) {
  const auto claim = DirectoryClaims::of_this_process().find(directory);
  return claim && claim->is_held;
}

// Renames and removals for a start that must not fail for them, unless the directory is another's.
void tidy(const std::string& what, const std::function<void()>& work) {
  try {
    work();
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    log_warning("{} could not be renamed: {}", what, error.what());
  }
}

// The directory and its mirror are this process's, no other is, whatever a state file names there.
void mark_in(const FallBackOptions& options, const std::string& directory, const std::string& prefix) {
  const std::string here = join_path(directory, base_name(prefix));
  log_warning("{} is renamed to {} and is not tried again", prefix, mark_corrupt(*options.files, here));
  remove_corrupt_sets(*options.files, directory, kCorruptSetsKept);
}

// Those of the mirror belong to who has the directory. A mirror that fails, or is another's, is no obstacle.
void mark_damaged(const FallBackOptions& options, const std::string& prefix) {
  if (!is_held(options.directory)) {
    log_info("{} is not renamed: this process has not locked {}", prefix, options.directory);
    return;
  }
  const bool is_here = lies_in(prefix, options.directory);
  if (!is_here && !is_mirrored(options, prefix)) {
    log_warning("{} is not renamed: this process has locked only {}", prefix, options.directory);
    return;
  }
  try {
    tidy(prefix, [&] { mark_in(options, is_here ? options.directory : options.mirror.directory, prefix); });
  } catch (const DirectoryLostError& error) {
    if (!is_mirrored(options, prefix)) throw;
    log_warning("{} is not renamed: {}", prefix, error.what());
  }
}

// One restore, from the first candidate to the last.
class FallingBack {
 public:
  FallingBack(Saver& saver, Session& session, const FallBackOptions& options, std::vector<std::string> unknown)
      : saver_(saver), session_(session), options_(options), unknown_(std::move(unknown)) {}

  FallBack run() {
    const RecoverySearch found = search_for_recovery(options_);
    report_incomplete(found);
    result_.damaged = found.incomplete;
    out_of_reach_ = found.mirror_failure;
    try_all(found.candidates);
    if (!result_.restored) raise_if_there_is_something(found.without_index);
    result_.damaged.insert(result_.damaged.end(), found.without_index.begin(), found.without_index.end());
    result_.skipped.insert(result_.skipped.end(), failed_.begin(), failed_.end());
    for (const std::string& prefix : result_.damaged) mark_damaged(options_, prefix);
    return std::move(result_);
  }

 private:
  static void report_incomplete(const RecoverySearch& found) {
    for (const std::string& prefix : found.incomplete) {
      log_error("checkpoint {} is damaged: data files are missing", prefix);
    }
    for (const std::string& prefix : found.without_index) {
      log_error("checkpoint {} cannot be restored: its data files exist, but its index {} is missing", prefix,
                index_path(prefix));
    }
  }

  void try_all(const std::vector<std::string>& candidates) {
    std::vector<std::string> last, doubtful;  // newest first
    for (const std::string& prefix : candidates) {
      if (result_.restored) return;
      const std::optional<SkipReason> reason = reason_to_skip(options_, prefix);
      if (!reason) {
        try_next(prefix);
        continue;
      }
      result_.skipped.push_back(prefix);
      (reason->is_doubtful ? doubtful : last).push_back(prefix);
    }
    last.insert(last.end(), doubtful.rbegin(), doubtful.rend());
    for (const std::string& prefix : last) {
      if (!result_.restored) try_next(prefix);
    }
  }

  void try_next(const std::string& prefix) {
    try {
      saver_.restore(session_, prefix);
      result_.restored = prefix;
      if (is_mirrored(options_, prefix)) {
        log_warning("the model is restored from the mirror: {}", prefix);
      } else if (!lies_in(prefix, options_.directory)) {
        log_warning("the model is restored from {}, which is not in {}: the state file there names it", prefix,
                    options_.directory);
      }
    } catch (const Error& error) {
      if (is_damage(error)) {
        log_error("checkpoint {} is damaged and skipped: {}", prefix, error.what());
        result_.damaged.push_back(prefix);
      } else if (is_mirrored(options_, prefix) && is_out_of_reach(error)) {
        log_error("checkpoint {} cannot be read and is skipped: {}", prefix, error.what());
        out_of_reach_ = error.what();
      } else if (error.code() == Code::kResourceExhausted) {
        fail(prefix, error.code(), error.what());
      } else {
        throw;
      }
    } catch (const std::bad_alloc& error) {
      fail(prefix, Code::kResourceExhausted, error.what());
    } catch (const std::exception& error) {
      fail(prefix, Code::kUnknown, error.what());
    }
  }

  // What may be damage, and may be none.
  void fail(const std::string& prefix, Code code, const std::string& why) {
    log_error("checkpoint {} could not be restored and is skipped in favour of an older one: {}", prefix, why);
    failed_.push_back(prefix);
    if (failure_.empty()) failure_ = fmt::format("checkpoint {} could not be restored: {}", prefix, why);
    if (failed_.size() == 1) failure_code_ = code;
  }

  void raise_if_there_is_something(const std::vector<std::string>& without_index) const {
    if (!failure_.empty()) throw_error(failure_code_, failure_);
    if (!out_of_reach_.empty()) {
      throw UnavailableError(
          fmt::format("{} has no intact checkpoint, and its mirror {} cannot be searched: {}. Make the mirror "
                      "reachable, or train without one to start afresh",
                      options_.directory, options_.mirror.directory, out_of_reach_));
    }
    explain_nothing_restored(options_, result_.damaged, without_index, unknown_);
  }

  Saver& saver_;
  Session& session_;
  const FallBackOptions& options_;
  const std::vector<std::string> unknown_;  // data files of which nothing says that they were committed, or were not
  FallBack result_;
  std::vector<std::string> failed_;  // which could not be restored, though they are not known to be damaged
  Code failure_code_ = Code::kOk;    // of the first of them
  std::string failure_;              // why; empty: there is none
  std::string out_of_reach_;         // what kept the mirror from being searched or read; empty: nothing
};

}  // namespace

FallBack restore_newest_intact(Saver& saver, Session& session, const FallBackOptions& options) {
  if (is_held(options.directory)) {
    check_state_file(*options.files, options.directory);
    check_retention_file(*options.files, options.directory);
    tidy(options.directory, [&] { complete_corrupt_sets(*options.files, options.directory); });
    tidy(options.directory, [&] { remove_crash_leftovers(*options.files, options.directory, options.basename); });
  }
  std::vector<std::string> unknown;
  if (options.recovery.search_directory)
    unknown = data_without_index(*options.files, options.directory, options.basename);
  return FallingBack(saver, session, options, std::move(unknown)).run();
}

}  // namespace longhaul
