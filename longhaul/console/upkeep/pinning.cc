#include "longhaul/console/upkeep/pinning.h"

#include <fmt/format.h>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/directory/retention_lock.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/console/text/shown_text.h"

namespace longhaul::console {
namespace {

constexpr int kMostTries = 5;
constexpr Seconds kLongestWait{10};  // for who else changes the file

// The prefix as the retention file's functions have it: in the directory, by its base name.
std::string existing_checkpoint(FileSystem& files, const std::string& named) {
  const std::string prefix = checkpoint_prefix(files, strip_file_scheme(named));
  if (files.is_directory(strip_file_scheme(named)) && !lies_in(prefix, strip_file_scheme(named))) {
    throw FailedPreconditionError(fmt::format(
        "the latest checkpoint of {} is {}, which is not in it: name the checkpoint that you mean", named, prefix));
  }
  if (!checkpoint_exists(files, prefix)) throw NotFoundError(fmt::format("there is no checkpoint {}", prefix));
  return prefix;
}

KeptCheckpoints::iterator entry_of(KeptCheckpoints& kept, const std::string& prefix) {
  auto it = kept.begin();
  while (it != kept.end() && base_name(it->first) != base_name(prefix)) ++it;
  return it;
}

bool is_pinned_in(KeptCheckpoints& kept, const std::string& prefix) {
  const auto it = entry_of(kept, prefix);
  return it != kept.end() && it->second.pinned;
}

// A line with neither a pin nor a metric means that the checkpoint is to be deleted: right for one that is no longer
// among the newest.
void change(KeptCheckpoints& kept, const std::string& prefix, bool is_pinned) {
  auto it = entry_of(kept, prefix);
  if (it == kept.end()) {
    if (is_pinned) kept[prefix].pinned = true;
    return;
  }
  it->second.pinned = is_pinned;
  if (!is_pinned && !it->second.metric && !it->second.fallen_out) kept.erase(it);
}

// Where there are no locks, a training may replace the file between the reading and the writing here, so it is read
// again.
void change_file(FileSystem& files, const std::string& prefix, bool is_pinned) {
  const std::string directory = directory_name(prefix);
  check_retention_file(files, directory);
  const RetentionLock lock(files, Clock::real(), directory, kLongestWait);
  if (lock.state() == RetentionLock::State::kTaken) throw UnavailableError(lock.why() + ": try again");
  const auto read = [&] {
    return usable_retention(files, directory, "none is pinned or unpinned").value_or(KeptCheckpoints());
  };
  for (int i = 0; i < kMostTries; ++i) {
    KeptCheckpoints kept = read();
    if (is_pinned_in(kept, prefix) == is_pinned) return;
    change(kept, prefix, is_pinned);
    write_retention(files, directory, kept);
  }
  KeptCheckpoints kept = read();
  if (is_pinned_in(kept, prefix) == is_pinned) return;
  throw UnavailableError(
      fmt::format("{} is replaced by somebody else all the time: try again", retention_path(directory)));
}

void change_or_say_how(FileSystem& files, const std::string& prefix, bool is_pinned) {
  try {
    change_file(files, prefix, is_pinned);
  } catch (const ResourceExhaustedError& error) {
    throw ResourceExhaustedError(fmt::format(
        "{}; {} is {}: make room elsewhere on the disk, a few kB, and {} it again; `longhaul prune {}` shows which old "
        "checkpoints may go",
        error.what(), prefix, is_pinned ? "not pinned" : "still pinned", is_pinned ? "pin" : "unpin",
        directory_name(prefix)));
  }
}

}  // namespace

Report pin_checkpoints(FileSystem& files, const std::vector<std::string>& prefixes, bool is_pinned) {
  std::vector<std::string> checkpoints;
  for (const std::string& named : prefixes) checkpoints.push_back(existing_checkpoint(files, named));
  Report report{.json = json_of(is_pinned ? "pin" : "unpin")};
  report.json["checkpoints"] = checkpoints;
  for (const std::string& prefix : checkpoints) {
    change_or_say_how(files, prefix, is_pinned);
    if (is_pinned && !checkpoint_exists(files, prefix)) {
      throw NotFoundError(fmt::format("{} was deleted while it was pinned", prefix));
    }
    report.text += fmt::format("{} is {}\n", shown(prefix, 1000), is_pinned ? "pinned" : "not pinned");
  }
  return report;
}

}  // namespace longhaul::console
