#include "longhaul/train/fall_back.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/checkpoint/corrupt_set.h"
#include "longhaul/checkpoint/latest_checkpoint.h"
#include "longhaul/io/directory_claims.h"
#include "longhaul/io/directory_lock.h"

namespace longhaul {
namespace {

bool is_damage(const Error& error) {
  return error.code() == Code::kDataLoss;
}

bool is_passed_over(const FallBackOptions& options, const std::string& prefix) {
  if (!options.pass_over) return false;
  const std::optional<std::string> why = options.pass_over(prefix);
  if (why) log_warning("checkpoint {} is passed over for the one before it: {}", prefix, *why);
  return why.has_value();
}

// Whether it could be restored, or is damaged.
bool try_to_restore(Saver& saver, Session& session, const std::string& prefix) {
  try {
    saver.restore(session, prefix);
    return true;
  } catch (const Error& error) {
    if (!is_damage(error)) throw;
    log_error("checkpoint {} is damaged and passed over: {}", prefix, error.what());
    return false;
  }
}

bool is_held(const std::string& directory) {
  const auto claim = DirectoryClaims::of_this_process().find(directory);
  return claim && claim->is_held;
}

// Renames and removals for a start that must not fail for them, unless the directory is another's.
void tidy(const std::string& what, const std::function<void()>& work) {
  try {
    work();
  } catch (const DirectoryTakenError&) {
    throw;
  } catch (const Error& error) {
    log_warning("{} could not be renamed: {}", what, error.what());
  }
}

void mark_damaged(FileSystem& files, const std::string& prefix) {
  if (!is_held(directory_name(prefix))) {
    log_info("{} stays as it is: this process has not locked its directory", prefix);
    return;
  }
  tidy(prefix, [&] {
    log_warning("{} is not tried again: it is now {}", prefix, mark_corrupt(files, prefix));
    remove_corrupt_sets(files, directory_name(prefix), kCorruptSetsKept);
  });
}

std::vector<std::string> incomplete(const FallBackOptions& options) {
  const auto prefixes = incomplete_checkpoints(*options.files, options.directory, options.basename);
  for (const std::string& prefix : prefixes) log_error("checkpoint {} is damaged: data files are missing", prefix);
  return prefixes;
}

}  // namespace

FallBack restore_newest_whole(Saver& saver, Session& session, const FallBackOptions& options) {
  if (is_held(options.directory)) {
    tidy(options.directory, [&] { complete_corrupt_sets(*options.files, options.directory); });
  }
  FallBack result{.damaged = incomplete(options)};
  const auto try_next = [&](const std::string& prefix) {
    if (try_to_restore(saver, session, prefix)) {
      result.restored = prefix;
    } else {
      result.damaged.push_back(prefix);
    }
  };
  for (const std::string& prefix : checkpoint_candidates(*options.files, options.directory, options.basename)) {
    if (result.restored) break;
    if (is_passed_over(options, prefix)) {
      result.passed_over.push_back(prefix);
    } else {
      try_next(prefix);
    }
  }
  for (const std::string& prefix : result.passed_over) {
    if (!result.restored) try_next(prefix);
  }
  if (!result.restored && !result.damaged.empty()) {
    throw DataLossError(
        fmt::format("all checkpoints in {} are damaged ({}); to start afresh, move them away or use another directory",
                    options.directory, fmt::join(result.damaged, ", ")));
  }
  for (const std::string& prefix : result.damaged) mark_damaged(*options.files, prefix);
  return result;
}

}  // namespace longhaul
