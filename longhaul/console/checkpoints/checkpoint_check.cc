#include "longhaul/console/checkpoints/checkpoint_check.h"

#include <fmt/format.h>

#include "longhaul/base/size_text.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
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

std::vector<Candidate> candidates_of(FileSystem& files, const CheckOptions& options) {
  std::vector<Candidate> all;
  for (const std::string& path : options.paths) {
    if (!files.is_directory(path)) {
      all.push_back({path});
    } else if (!options.all) {
      all.push_back({path, true});
    } else {
      for (const ListedCheckpoint& one : checkpoints_in(files, path)) {
        const bool is_committed =
            one.state == ListedCheckpoint::State::kComplete || one.state == ListedCheckpoint::State::kLacksData;
        if (is_committed) all.push_back({one.prefix, true});
      }
    }
  }
  return all;
}

struct Finding {
  enum class State { kIntact, kStructure, kDamaged, kGone, kUnreadable };
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
  return state != Finding::State::kDamaged && state != Finding::State::kUnreadable;
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
