#include "longhaul/console/upkeep/pruning.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/directory/checkpoint_reader.h"
#include "longhaul/checkpoint/directory/retention_file.h"
#include "longhaul/checkpoint/directory/retention_lock.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"
#include "longhaul/console/upkeep/room_on_full_disk.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul::console {
namespace {

constexpr Seconds kLongestWaitForPins{10};  // for who changes the pins

struct Choice {
  ListedCheckpoint checkpoint;
  std::string kept_for;  // why it is kept; empty: it is deleted
};

std::string name_in_state(FileSystem& files, const std::string& directory) {
  const ReadCheckpointState read = read_checkpoint_state(files, directory);
  return read.status == ReadCheckpointState::Status::kRead ? base_name(read.state.model_checkpoint_path) : "";
}

std::vector<Choice> choose(FileSystem& files, const PruneOptions& options) {
  const std::string named = name_in_state(files, options.directory);
  std::vector<Choice> choices;
  std::map<std::string, size_t> newer;  // how many checkpoints of that name came already, from the newest on
  std::vector<ListedCheckpoint> found = checkpoints_in(files, options.directory);
  std::reverse(found.begin(), found.end());
  for (ListedCheckpoint& one : found) {
    if (one.state != ListedCheckpoint::State::kComplete) continue;
    const bool is_multiple = options.keep_multiples > 0 && one.step && *one.step % options.keep_multiples == 0;
    const bool is_new = one.step && newer[split_step(base_name(one.prefix)).base]++ < options.keep;
    std::string why;
    if (!one.step) why = "no step";
    if (is_multiple) why = fmt::format("a multiple of {}", options.keep_multiples);
    if (is_new) why = fmt::format("one of the newest {}", options.keep);
    if (one.metric) why = "has a metric";
    if (one.is_pinned) why = "pinned";
    if (base_name(one.prefix) == named) why = "named in the state file";
    if (one.is_latest) why = "the latest";
    choices.push_back({std::move(one), std::move(why)});
  }
  std::reverse(choices.begin(), choices.end());
  return choices;
}

void check_latest(FileSystem& files, const std::string& directory, const std::vector<Choice>& choices,
                  const Progress& progress) {
  std::optional<std::string> damaged;
  for (const ListedCheckpoint& one : checkpoints_in(files, directory)) {
    using State = ListedCheckpoint::State;
    if (one.is_latest) damaged = std::nullopt;
    if (one.state == State::kDamaged || one.state == State::kLacksData) damaged = one.prefix;
  }
  if (damaged) {
    throw DataLossError(
        fmt::format("{} is newer than the latest, and not whole, so nothing is deleted: longhaul verify says what it "
                    "lacks; remove its files if nothing can be done",
                    *damaged));
  }
  for (const Choice& choice : choices) {
    if (!choice.checkpoint.is_latest) continue;
    const CheckpointReader reader(choice.checkpoint.prefix, files);
    uint64_t done = 0;
    const std::vector<std::string> damages = reader.bundle().verify([&](uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, reader.bundle().total_bytes());
    });
    if (damages.empty()) return;
    throw DataLossError(fmt::format("{} is damaged, so nothing is deleted: {}", choice.checkpoint.prefix, damages[0]));
  }
  if (const auto elsewhere = latest_elsewhere(files, directory)) {
    throw FailedPreconditionError(
        fmt::format("the latest checkpoint is {}, which is not in {}, so nothing is deleted", *elsewhere, directory));
  }
  throw FailedPreconditionError("no checkpoint is the latest, so nothing is deleted");
}

// nullopt: there is none. FailedPreconditionError: it is there, but nobody knows which checkpoint it names.
std::optional<CheckpointState> usable_state(FileSystem& files, const std::string& directory) {
  ReadCheckpointState read = read_checkpoint_state(files, directory);
  if (read.status == ReadCheckpointState::Status::kMissing) return std::nullopt;
  if (read.status == ReadCheckpointState::Status::kRead) return std::move(read.state);
  throw FailedPreconditionError(
      fmt::format("cannot tell which checkpoint is named as the latest, so nothing is deleted: {}. Repair {}, or move "
                  "it away: then the newest checkpoint is the latest",
                  read.why, join_path(directory, kDefaultStateFile)));
}

// The state without these checkpoints, which it marks for deletion, or no longer does.
void write_state_without(FileSystem& files, const std::string& directory, const std::set<std::string>& names,
                         bool are_marked) {
  const std::optional<CheckpointState> state = usable_state(files, directory);
  if (!state) return;
  CheckpointState next = *state;
  next.all_model_checkpoint_paths.clear();
  next.all_model_checkpoint_timestamps.clear();
  const bool has_times = state->all_model_checkpoint_timestamps.size() == state->all_model_checkpoint_paths.size();
  for (size_t i = 0; i < state->all_model_checkpoint_paths.size(); ++i) {
    const std::string& path = state->all_model_checkpoint_paths[i];
    if (names.contains(base_name(path))) continue;
    next.all_model_checkpoint_paths.push_back(path);
    if (has_times) next.all_model_checkpoint_timestamps.push_back(state->all_model_checkpoint_timestamps[i]);
  }
  std::erase_if(next.paths_marked_for_deletion,
                [&](const std::string& path) { return names.contains(base_name(path)); });
  if (are_marked) {
    for (const std::string& name : names) next.paths_marked_for_deletion.push_back(join_path(directory, name));
  }
  constexpr bool kRelativePaths = true;
  write_checkpoint_state(files, directory, next, kRelativePaths);
}

std::set<std::string> names_to_delete(const std::vector<Choice>& choices) {
  std::set<std::string> names;
  for (const Choice& choice : choices) {
    if (choice.kept_for.empty()) names.insert(base_name(choice.checkpoint.prefix));
  }
  return names;
}

// FailedPreconditionError: one of the files that say what is kept cannot be used.
using Check = void (*)(FileSystem& files, const std::string& directory);
constexpr Check kChecks[] = {
    [](FileSystem& files, const std::string& directory) { usable_retention(files, directory, "nothing is deleted"); },
    [](FileSystem& files, const std::string& directory) { usable_state(files, directory); },
};

// Held while checkpoints are chosen and deleted, so that none is pinned meanwhile.
std::unique_ptr<RetentionLock> lock_pins(FileSystem& files, const std::string& directory) {
  auto pins = std::make_unique<RetentionLock>(files, Clock::real(), directory, kLongestWaitForPins);
  if (pins->state() == RetentionLock::State::kTaken) throw UnavailableError(pins->why() + ": try again");
  return pins;
}

std::vector<Choice> choose_to_delete(FileSystem& files, const PruneOptions& options, const Progress& progress) {
  for (const Check check : kChecks) check(files, options.directory);
  std::vector<Choice> choices = choose(files, options);
  if (!names_to_delete(choices).empty()) check_latest(files, options.directory, choices, progress);
  return choices;
}

// The oldest, for whose deletion a full disk needs no room. nullopt: none is to go.
std::optional<Choice> delete_oldest(FileSystem& files, const PruneOptions& options, const Progress& progress) {
  const auto pins = lock_pins(files, options.directory);
  for (Choice& choice : choose_to_delete(files, options, progress)) {
    if (!choice.kept_for.empty()) continue;
    remove_checkpoint(files, choice.checkpoint.prefix);
    return std::move(choice);
  }
  return std::nullopt;
}

// False: the disk is full.
bool mark_if_there_is_room(FileSystem& files, const std::string& directory, const std::set<std::string>& names) {
  try {
    write_state_without(files, directory, names, true);
    return true;
  } catch (const ResourceExhaustedError&) {
    return false;
  }
}

// `first`: what was deleted before, which the state file may still list.
std::vector<Choice> delete_chosen(FileSystem& files, const PruneOptions& options, const DirectoryLock& lock,
                                  const std::optional<Choice>& first, const Progress& progress) {
  const auto pins = lock_pins(files, options.directory);
  std::vector<Choice> choices = choose_to_delete(files, options, progress);
  if (first) choices.insert(choices.begin(), *first);
  const std::set<std::string> names = names_to_delete(choices);
  if (names.empty()) return choices;
  bool are_marked = false;
  for (const std::string& name : names) {
    lock.check();
    are_marked = are_marked || mark_if_there_is_room(files, options.directory, names);
    remove_checkpoint(files, join_path(options.directory, name));
  }
  write_state_without(files, options.directory, names, false);
  return choices;
}

// What was chosen, and with it the one that had to make room for the lock.
std::vector<Choice> prune(FileSystem& files, const PruneOptions& options, const Progress& progress) {
  std::optional<Choice> first;
  const auto lock = lock_full_directory(files, options.directory, [&] {
    first = delete_oldest(files, options, progress);
    return first ? std::optional(first->checkpoint.prefix) : std::nullopt;
  });
  try {
    return delete_chosen(files, options, *lock, first, progress);
  } catch (const ResourceExhaustedError& error) {
    throw ResourceExhaustedError(fmt::format(
        "{}: checkpoints were deleted, but the state file still names them, which does no harm; make room elsewhere on "
        "the disk",
        error.what()));
  }
}

// What a preview has to say of what keeps --delete from it.
std::vector<std::string> obstacles_to(FileSystem& files, const PruneOptions& options) {
  if (options.deletes) return {};
  std::vector<std::string> obstacles;
  for (const Check check : kChecks) {
    try {
      check(files, options.directory);
    } catch (const FailedPreconditionError& error) {
      obstacles.emplace_back(error.what());
    }
  }
  if (const auto elsewhere = latest_elsewhere(files, options.directory)) {
    obstacles.push_back(fmt::format("the latest checkpoint is {}, which is not in {}", *elsewhere, options.directory));
  }
  return obstacles;
}

Report report_of(const std::vector<Choice>& choices, const PruneOptions& options, const Terminal& terminal) {
  Report report{.json = json_of("prune")};
  report.json["path"] = options.directory;
  report.json["deleted"] = options.deletes;
  Json& listed = report.json["checkpoints"] = Json::array();
  Table table({{"checkpoint"}, {"size", Align::kRight}, {""}});
  uint64_t bytes = 0;
  size_t count = 0;
  const char* const fate = options.deletes ? "deleted" : "would be deleted";
  for (const auto& [checkpoint, kept_for] : choices) {
    const bool goes = kept_for.empty();
    table.add({base_name(checkpoint.prefix), size_text(checkpoint.bytes),
               goes ? Cell(fate, Paint::kRed) : Cell("kept: " + kept_for)});
    listed.push_back({{"path", checkpoint.prefix}, {"bytes", checkpoint.bytes}, {"kept_for", kept_for}});
    bytes += goes ? checkpoint.bytes : 0;
    count += goes ? 1 : 0;
  }
  report.json["bytes"] = bytes;
  report.text = table.text(terminal) + fmt::format("{} checkpoint{}, {}, {} {}{}\n", count, count == 1 ? "" : "s",
                                                   size_text(bytes), count == 1 ? "is" : "are",
                                                   options.deletes ? "deleted" : "to be deleted",
                                                   options.deletes || count == 0 ? "" : ": run it again with --delete");
  return report;
}

}  // namespace

Report prune_checkpoints(FileSystem& files, const PruneOptions& options, const Terminal& terminal,
                         const Progress& progress) {
  const std::vector<Choice> choices = options.deletes ? prune(files, options, progress) : choose(files, options);
  Report report = report_of(choices, options, terminal);
  for (const std::string& obstacle : obstacles_to(files, options)) {
    report.text += fmt::format("--delete will refuse: {}\n", shown(obstacle, 1000));
    report.json["obstacles"].push_back(obstacle);
    report.is_fine = false;
  }
  return report;
}

}  // namespace longhaul::console
