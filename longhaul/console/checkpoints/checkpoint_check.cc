#include "longhaul/console/checkpoints/checkpoint_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/console/text/shown_text.h"

namespace longhaul::console {
namespace {

constexpr size_t kMostDamages = 20;  // that are shown, of a checkpoint

struct Candidate {
  std::string path;
  bool may_vanish = false;  // it was found in a directory, and a training may delete it
};

bool is_committed(const ListedCheckpoint& one) {
  using State = ListedCheckpoint::State;
  return one.state == State::kComplete || one.state == State::kLacksData || one.state == State::kDamaged;
}

// Those of a directory that a restart skips, since their files are not whole, and that are newer than what it takes.
std::vector<std::string> lost_after_latest(FileSystem& files, const std::string& directory) {
  using State = ListedCheckpoint::State;
  const ReadCheckpointState read = read_checkpoint_state(files, directory);
  const bool has_state = read.status == ReadCheckpointState::Status::kRead;
  const std::string named = has_state ? base_name(read.state.model_checkpoint_path) : "";
  const std::vector<ListedCheckpoint> found = checkpoints_in(files, directory);
  const auto latest = std::find_if(found.begin(), found.end(), [](const auto& one) { return one.is_latest; });
  std::vector<std::string> lost;
  for (const ListedCheckpoint& one : found) {
    const bool is_partial = one.state == State::kLacksData || one.state == State::kDamaged ||
                            (one.state == State::kNoIndex && base_name(one.prefix) == named);
    if (latest != found.end() && is_partial && one.step > latest->step) lost.push_back(one.prefix);
  }
  return lost;
}

std::vector<Candidate> candidates_of(FileSystem& files, const CheckOptions& options) {
  std::vector<Candidate> all;
  for (const std::string& path : options.paths) {
    if (!files.is_directory(path)) {
      all.push_back({path});
    } else if (!options.all) {
      all.push_back({path, true});
      for (const std::string& prefix : lost_after_latest(files, path)) all.push_back({prefix});
    } else {
      for (const ListedCheckpoint& one : checkpoints_in(files, path)) {
        const bool is_damaged = one.state == ListedCheckpoint::State::kDamaged;  // also if no index is found: not gone
        if (is_committed(one)) all.push_back({one.prefix, !is_damaged});
      }
    }
  }
  return all;
}

struct Finding {
  enum class State { kIntact, kStructure, kDamaged, kElsewhere, kGone, kUnreadable };
  State state = State::kIntact;
  std::string path{};
  uint64_t bytes = 0;
  size_t tensors = 0;
  std::vector<std::string> messages{};
};

const char* name_of(Finding::State state) {
  switch (state) {
    case Finding::State::kIntact: return "intact";
    case Finding::State::kStructure: return "well-formed";
    case Finding::State::kDamaged: return "damaged";
    case Finding::State::kElsewhere: return "elsewhere";
    case Finding::State::kGone: return "deleted meanwhile";
    case Finding::State::kUnreadable: return "unreadable";
  }
  return "";
}

Finding examine(FileSystem& files, const Candidate& candidate, const Progress& progress) {
  using State = Finding::State;
  Finding finding{.path = candidate.path};
  try {
    const auto source = open_tensors(files, candidate.path);
    finding.path = source->path();
    finding.bytes = source->total_bytes();
    finding.tensors = source->tensors().size();
    uint64_t done = 0;
    finding.messages = source->damages([&](uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, finding.bytes);
    });
    finding.state = source->has_checksums() ? State::kIntact : State::kStructure;
    if (!finding.messages.empty()) finding.state = State::kDamaged;
    const bool is_lost = !finding.messages.empty() && !files.is_directory(finding.path) &&
                         source->format() == "checkpoint" && !committed_prefix(files, finding.path);
    if (is_lost) throw NotFoundError(finding.messages.front());
    const bool is_of_directory = files.is_directory(candidate.path) && source->format() == "checkpoint";
    if (finding.state == State::kIntact && is_of_directory && !lies_in(finding.path, candidate.path)) {
      finding.state = State::kElsewhere;
      finding.messages = {
          fmt::format("it is intact, but not in {}, whose file {} names it: what lies in there has not "
                      "been looked at; verify this one by its own name",
                      candidate.path, kDefaultStateFile)};
    }
  } catch (const NotFoundError& error) {
    const bool is_gone = candidate.may_vanish && finding.path != candidate.path;
    finding.state =
        is_gone || (candidate.may_vanish && !files.is_directory(candidate.path)) ? State::kGone : State::kUnreadable;
    finding.messages = {error.what()};
  } catch (const DataLossError& error) {
    finding.state = State::kDamaged;
    finding.messages = {error.what()};
  } catch (const Error& error) {
    finding.state = State::kUnreadable;
    finding.messages = {error.what()};
  }
  return finding;
}

bool is_fine(Finding::State state) {
  return state != Finding::State::kDamaged && state != Finding::State::kElsewhere &&
         state != Finding::State::kUnreadable;
}

std::string text_of(const Finding& finding, const Terminal& terminal) {
  const Paint paint = is_fine(finding.state) ? Paint::kGreen : Paint::kRed;
  std::string text = fmt::format("{}  {}", painted(name_of(finding.state), paint, terminal), shown(finding.path, 1000));
  if (finding.tensors > 0) text += fmt::format(": {} tensors, {}", finding.tensors, size_text(finding.bytes));
  if (finding.state == Finding::State::kStructure) text += "; the format has no checksums";
  text += "\n";
  if (finding.state == Finding::State::kGone) return text;
  for (size_t i = 0; i < finding.messages.size() && i < kMostDamages; ++i) {
    text += "  " + shown(finding.messages[i], 1000) + "\n";
  }
  if (finding.messages.size() > kMostDamages) {
    text += fmt::format("  and {} more\n", finding.messages.size() - kMostDamages);
  }
  return text;
}

}  // namespace

Report check_checkpoints(FileSystem& files, const CheckOptions& options, const Terminal& terminal,
                         const Progress& progress) {
  Report report{.json = json_of("verify")};
  Json& results = report.json["checkpoints"] = Json::array();
  for (const Candidate& candidate : candidates_of(files, options)) {
    const Finding finding = examine(files, candidate, progress);
    report.is_fine = report.is_fine && is_fine(finding.state);
    report.text += text_of(finding, terminal);
    results.push_back({{"path", finding.path},
                       {"state", name_of(finding.state)},
                       {"tensors", finding.tensors},
                       {"bytes", finding.bytes},
                       {"messages", finding.messages}});
  }
  if (results.empty()) {
    report.text += "no checkpoint\n";
    report.is_fine = false;
  }
  report.json["fine"] = report.is_fine;
  return report;
}

}  // namespace longhaul::console
