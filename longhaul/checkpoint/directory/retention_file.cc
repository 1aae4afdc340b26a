#include "longhaul/checkpoint/directory/retention_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/listed_name.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 22;
constexpr std::string_view kFirstLine = "longhaul retention 1";

std::string line_of(const std::string& name, const KeptCheckpoint& kept) {
  std::string line;
  if (kept.pinned) line += "pinned ";
  if (kept.fallen_out) line += "fallen_out ";
  if (kept.metric) line += fmt::format("metric {} ", *kept.metric);
  return line + "checkpoint " + name;
}

// Takes the first word, and the space behind it, off the line.
std::string_view next_word(std::string_view& line) {
  const std::string_view word = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), word.size() + 1));
  return word;
}

bool parse_number(std::string_view text, std::optional<double>& number) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return false;
  number = value;
  return !std::isnan(value);
}

// False: it is no such line.
bool parse_line(std::string_view line, std::string& name, KeptCheckpoint& kept) {
  while (!line.empty()) {
    const std::string_view word = next_word(line);
    if (word == "pinned") {
      kept.pinned = true;
    } else if (word == "fallen_out") {
      kept.fallen_out = true;
    } else if (word == "metric") {
      if (!parse_number(next_word(line), kept.metric)) return false;
    } else {
      name = line;
      return word == "checkpoint" && !name.empty();
    }
  }
  return false;
}

KeptCheckpoints parse(const std::string& text, const std::string& path, const std::string& directory) {
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) {
    throw DataLossError(fmt::format("{}: the first line is not \"{}\"", path, kFirstLine));
  }
  KeptCheckpoints kept;
  size_t refused = 0;
  std::string first_refused;
  while (std::getline(lines, line)) {
    std::string name;
    KeptCheckpoint checkpoint;
    if (!parse_line(line, name, checkpoint))
      throw DataLossError(fmt::format("{}: malformed line \"{}\"", path, excerpt(line)));
    if (is_listed_name(name)) {
      kept[join_path(directory, name)] = checkpoint;
    } else if (refused++ == 0) {
      first_refused = excerpt(line);
    }
  }
  if (refused > 0) {
    log_warning("{}: {} lines are ignored because they do not name a file of this directory; the first is \"{}\"", path,
                refused, first_refused);
  }
  return kept;
}

}  // namespace

std::string retention_path(const std::string& directory, const std::string& latest_filename) {
  return join_path(directory, latest_filename + ".retention");
}

void write_retention(FileSystem& files, const std::string& directory, const KeptCheckpoints& kept,
                     const std::string& latest_filename) {
  std::string text = std::string(kFirstLine) + '\n';
  for (const auto& [prefix, checkpoint] : kept) {
    const std::string name = base_name(prefix);
    if (!is_listed_name(name)) {
      throw InvalidArgumentError(fmt::format(
          "{}: a checkpoint with a pin or a metric cannot be called \"{}\": the name is too long or has a line break",
          retention_path(directory, latest_filename), excerpt(name)));
    }
    text += line_of(name, checkpoint) + '\n';
  }
  write_file_atomically(files, retention_path(directory, latest_filename), text);
}

void check_retention_file(FileSystem& files, const std::string& directory, const std::string& latest_filename) {
  const std::string path = retention_path(directory, latest_filename);
  if (files.is_directory(path)) {
    throw FailedPreconditionError(
        fmt::format("{} is a directory, but must be the file that lists the pinned checkpoints: move it away", path));
  }
  try {
    files.open(path);
  } catch (const PermissionDeniedError& error) {
    throw PermissionDeniedError(fmt::format(
        "{}. The file lists the pinned checkpoints and would be replaced: let this user read it, or move it away",
        error.what()));
  } catch (const Error&) {  // it is not there; or it is damaged, which find_retention() tells
  }
}

namespace {

// Errors are those of reading it; nullopt: it is not there.
std::optional<KeptCheckpoints> load_retention(FileSystem& files, const std::string& directory,
                                              const std::string& latest_filename) {
  const std::string path = retention_path(directory, latest_filename);
  try {
    if (files.exists(path)) return parse(read_file(files, path, kMostBytes), path, directory);
  } catch (const NotFoundError&) {
  }
  return std::nullopt;
}

// The name is there, and it is a link to what is not: to a disk that is not mounted, say.
bool is_broken_link(FileSystem& files, const std::string& path) {
  const std::vector<std::string> names = names_in(files, directory_name(path));
  return std::find(names.begin(), names.end(), base_name(path)) != names.end() && !files.exists(path);
}

}  // namespace

std::optional<KeptCheckpoints> find_retention(FileSystem& files, const std::string& directory,
                                              const std::string& latest_filename) {
  try {
    return load_retention(files, directory, latest_filename);
  } catch (const Error& error) {
    log_warning("cannot tell which checkpoints are pinned or best: {}", error.what());
  }
  return std::nullopt;
}

std::optional<KeptCheckpoints> usable_retention(FileSystem& files, const std::string& directory, const std::string& so,
                                                const std::string& latest_filename) {
  const std::string path = retention_path(directory, latest_filename);
  std::string why;
  try {
    auto kept = load_retention(files, directory, latest_filename);
    if (kept || !is_broken_link(files, path)) return kept;
    why = path + " is a link to a missing file";
  } catch (const Error& error) {
    why = error.what();
  }
  throw FailedPreconditionError(
      fmt::format("cannot tell which checkpoints are pinned or best, so {}: {}. Repair {}, or move it away: then no "
                  "checkpoint is pinned, and none has a metric",
                  so, why, path));
}

KeptCheckpoints read_retention(FileSystem& files, const std::string& directory, const std::string& latest_filename) {
  return find_retention(files, directory, latest_filename).value_or(KeptCheckpoints());
}

}  // namespace longhaul
