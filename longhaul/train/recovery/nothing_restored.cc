#include "longhaul/train/recovery/nothing_restored.h"

#include <fmt/format.h>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/named_checkpoints.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/v1_checkpoint.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

constexpr size_t kMostLookedFor = 100;

template <typename Names>
std::string listed(const Names& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(excerpt(name, 300));
  return first_names(shown);
}

[[noreturn]] void throw_damaged(const std::string& directory, const std::vector<std::string>& damaged,
                                const std::vector<std::string>& without_index) {
  std::vector<std::string> missing;
  for (const std::string& prefix : without_index) missing.push_back(index_path(prefix));
  if (missing.empty()) {
    throw DataLossError(
        fmt::format("all checkpoints in {} are damaged ({}); to start afresh, move them away or use another directory",
                    directory, listed(damaged)));
  }
  throw DataLossError(fmt::format(
      "the checkpoints in {} have no index files: {} are missing, but their data files exist{}. Bring the index files "
      "back (finish the copy, or copy them from the original directory); to start afresh, move all files of these "
      "checkpoints away or use another directory",
      directory, listed(missing), damaged.empty() ? "" : fmt::format("; others are damaged ({})", listed(damaged))));
}

[[noreturn]] void throw_unknown(const std::string& directory, const std::vector<std::string>& unknown) {
  throw DataLossError(fmt::format(
      "{} has no checkpoint, but data files whose index files are missing: {}. No interrupted save has left them, and "
      "a training run that starts afresh could overwrite them. Bring the index files back; to start afresh, move these "
      "files away or use another directory",
      directory, listed(unknown)));
}

void refuse_v1(const FallBackOptions& options, const NamedCheckpoints& named) {
  FileSystem& files = *options.files;
  std::vector<std::string> prefixes;
  if (options.recovery.search_directory) prefixes = find_v1_checkpoints(files, options.directory, options.basename);
  for (const std::string& base : named.kept) {
    if (prefixes.size() < kMostLookedFor) prefixes.push_back(join_path(options.directory, base));
  }
  for (const std::string& prefix : prefixes) {
    if (!v1_files(files, prefix).empty()) throw_no_checkpoint(files, prefix, "there is no checkpoint " + prefix);
  }
}

void warn_of_gone(const FallBackOptions& options, const NamedCheckpoints& named) {
  if (named.kept.empty()) return;
  const std::string state = join_path(options.directory, kDefaultStateFile);
  log_warning(
      "{} names {} checkpoints, but none of them exists, so nothing is restored: {}. If they should exist (an "
      "incomplete copy, an unmounted disk), stop this run and bring them back before it writes its own; "
      "to start afresh without this warning, remove {} and {}.retention",
      state, named.kept.size(), listed(named.kept), state, state);
}

// How far the journal knows of steps; none: 0.
int64_t steps_of_journal(const FallBackOptions& options) {
  constexpr uint64_t kMostBytes = 16 << 20;
  try {
    const std::string text = read_file(*options.files, journal_path(options.directory), kMostBytes);
    return parse_run_journal(text).history.sums().highest_step.value_or(0);
  } catch (const Error& error) {
    log_debug("{} has no readable journal: {}", options.directory, error.what());
    return 0;
  }
}

void warn_of_steps_made(const FallBackOptions& options) {
  const int64_t steps = steps_of_journal(options);
  if (steps <= 0) return;
  log_warning(
      "{} records steps up to {}, but {} has no checkpoint: training starts from scratch. If there should be "
      "checkpoints (an unmounted disk, removed files), stop this run and bring them back; to start afresh without this "
      "warning, remove the journal",
      journal_path(options.directory), steps, options.directory);
}

}  // namespace

void explain_nothing_restored(const FallBackOptions& options, const std::vector<std::string>& damaged,
                              const std::vector<std::string>& without_index, const std::vector<std::string>& unknown) {
  if (!damaged.empty() || !without_index.empty()) throw_damaged(options.directory, damaged, without_index);
  const NamedCheckpoints named = named_checkpoints(*options.files, options.directory);
  refuse_v1(options, named);
  if (!unknown.empty()) throw_unknown(options.directory, unknown);
  warn_of_gone(options, named);
  if (named.kept.empty()) warn_of_steps_made(options);
}

}  // namespace longhaul
