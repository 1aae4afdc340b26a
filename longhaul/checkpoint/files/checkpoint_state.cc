#include "longhaul/checkpoint/files/checkpoint_state.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <sstream>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/proto/checkpoint_state.pb.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostStateBytes = uint64_t{1} << 22;
constexpr size_t kMostPathBytes = 4096;
constexpr int kMostNestedMessages = 100;  // in fields that are skipped: the stack is finite

// TensorFlow's readers refuse fields that they do not know, and skip comments.
constexpr std::string_view kDoomed = "# being deleted: ";

bool is_absolute(const std::string& path) {
  return std::filesystem::path(path).is_absolute();
}

std::string relative_to(const std::string& directory, const std::string& path) {
  const auto plain = [](const std::string& text) { return std::filesystem::absolute(text).lexically_normal(); };
  return plain(path).lexically_relative(plain(directory.empty() ? "." : directory)).string();
}

template <typename Change>
void change_paths(CheckpointState& state, Change change) {
  state.model_checkpoint_path = change(state.model_checkpoint_path);
  for (std::string& path : state.all_model_checkpoint_paths) path = change(path);
  for (std::string& path : state.paths_marked_for_deletion) path = change(path);
}

void check_timestamps(const CheckpointState& state) {
  const size_t paths = state.all_model_checkpoint_paths.size();
  const size_t timestamps = state.all_model_checkpoint_timestamps.size();
  if (timestamps == 0 || timestamps == paths) return;
  throw InvalidArgumentError(fmt::format("the checkpoint state has {} timestamps for {} paths", timestamps, paths));
}

std::string to_text(const CheckpointState& state) {
  proto::CheckpointState message;
  message.set_model_checkpoint_path(state.model_checkpoint_path);
  for (const auto& path : state.all_model_checkpoint_paths) message.add_all_model_checkpoint_paths(path);
  for (const double time : state.all_model_checkpoint_timestamps) message.add_all_model_checkpoint_timestamps(time);
  message.set_last_preserved_timestamp(state.last_preserved_timestamp);
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  for (const auto& path : state.paths_marked_for_deletion) {
    if (path.find('\n') == path.npos) text += fmt::format("{}{}\n", kDoomed, path);
  }
  return text;
}

std::vector<std::string> parse_marked_for_deletion(const std::string& text) {
  std::vector<std::string> paths;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kDoomed) && line.size() > kDoomed.size()) paths.push_back(line.substr(kDoomed.size()));
  }
  return paths;
}

// What is longer names no file, and what has a NUL in it another one than it seems to.
bool is_path(const std::string& path) {
  return path.size() <= kMostPathBytes && path.find('\0') == path.npos;
}

// Without the lines of names that are none.
CheckpointState state_of(const proto::CheckpointState& message, const std::vector<std::string>& marked) {
  CheckpointState state{.last_preserved_timestamp = message.last_preserved_timestamp()};
  if (is_path(message.model_checkpoint_path())) state.model_checkpoint_path = message.model_checkpoint_path();
  const auto& paths = message.all_model_checkpoint_paths();
  const auto& times = message.all_model_checkpoint_timestamps();
  const bool timed = times.size() == paths.size();
  if (!timed) state.all_model_checkpoint_timestamps.assign(times.begin(), times.end());
  for (int i = 0; i < paths.size(); ++i) {
    if (!is_path(paths[i])) continue;
    state.all_model_checkpoint_paths.push_back(paths[i]);
    if (timed) state.all_model_checkpoint_timestamps.push_back(times[i]);
  }
  std::copy_if(marked.begin(), marked.end(), std::back_inserter(state.paths_marked_for_deletion), is_path);
  return state;
}

void warn_of_refused(const proto::CheckpointState& message, const CheckpointState& state, const std::string& path) {
  const int refused =
      message.all_model_checkpoint_paths_size() - static_cast<int>(state.all_model_checkpoint_paths.size());
  if (refused == 0) return;
  const auto& paths = message.all_model_checkpoint_paths();
  log_warning("{}: {} lines are skipped because a checkpoint cannot have such a name; the first is \"{}\"", path,
              refused, excerpt(*std::find_if_not(paths.begin(), paths.end(), is_path)));
}

class KeptErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    if (first.empty()) first = fmt::format("line {}: {}", line + 1, message);
  }
  void AddWarning(int, google::protobuf::io::ColumnNumber, const std::string&) override {}
  std::string first;
};

// Fields of newer writers are skipped.
bool parse(const std::string& text, const std::string& path, CheckpointState& state, std::string& why) {
  proto::CheckpointState message;
  KeptErrors errors;
  google::protobuf::TextFormat::Parser parser;
  parser.AllowUnknownField(true);
  parser.SetRecursionLimit(kMostNestedMessages);
  parser.RecordErrorsTo(&errors);
  if (!parser.ParseFromString(text, &message)) {
    why = errors.first;
    return false;
  }
  state = state_of(message, parse_marked_for_deletion(text));
  warn_of_refused(message, state, path);
  why = "it names no checkpoint";
  return !state.model_checkpoint_path.empty();
}

}  // namespace

CheckpointState make_checkpoint_state(const std::string& directory, CheckpointState state) {
  auto& paths = state.all_model_checkpoint_paths;
  if (paths.empty() || paths.back() != state.model_checkpoint_path) paths.push_back(state.model_checkpoint_path);
  check_timestamps(state);
  if (!is_absolute(directory)) {
    change_paths(state,
                 [&](const std::string& path) { return is_absolute(path) ? path : relative_to(directory, path); });
  }
  return state;
}

void write_checkpoint_state(FileSystem& files, const std::string& directory, const CheckpointState& state,
                            bool relative_paths, const std::string& latest_filename) {
  const std::string path = join_path(directory, latest_filename);
  CheckpointState written = make_checkpoint_state(directory, state);
  if (relative_paths) {
    change_paths(written, [&](const std::string& p) { return is_absolute(p) ? relative_to(directory, p) : p; });
  }
  if (written.model_checkpoint_path == path) {
    throw InvalidArgumentError(
        fmt::format("Save path '{}' conflicts with path used for checkpoint state. Please use a "
                    "different save path.",
                    state.model_checkpoint_path));
  }
  check_state_file(files, directory, latest_filename);
  write_file_atomically(files, path, to_text(written));
}

void check_state_file(FileSystem& files, const std::string& directory, const std::string& latest_filename) {
  const std::string path = join_path(directory, latest_filename);
  if (!files.is_directory(path)) return;
  throw FailedPreconditionError(fmt::format(
      "{} is a directory, but must be the file that names the latest checkpoint: move it away, or give another "
      "latest_filename",
      path));
}

namespace {

// The name is there, and it is a link to what is not.
bool is_dangling(FileSystem& files, const std::string& path) {
  const std::vector<std::string> names = names_in(files, directory_name(path));
  return std::find(names.begin(), names.end(), base_name(path)) != names.end() && !files.exists(path);
}

}  // namespace

ReadCheckpointState read_checkpoint_state(FileSystem& files, const std::string& directory,
                                          const std::string& latest_filename) {
  using Status = ReadCheckpointState::Status;
  ReadCheckpointState result;
  const std::string path = join_path(directory, latest_filename);
  std::string why;
  try {
    if (!files.exists(path)) {
      if (!is_dangling(files, path)) return result;
      throw DataLossError(path + " is a link to a missing file");
    }
    result.status =
        parse(read_file(files, path, kMostStateBytes), path, result.state, why) ? Status::kRead : Status::kUnusable;
  } catch (const NotFoundError&) {
    return result;
  } catch (const Error& error) {
    result.status = Status::kUnusable;
    why = error.what();
  }
  if (result.status == Status::kUnusable) {
    return {
        Status::kUnusable, {}, fmt::format("Invalid checkpoint state loaded from {}: {}", path, excerpt(why, 1000))};
  }
  change_paths(result.state, [&](const std::string& p) { return join_path(directory, p); });
  return result;
}

}  // namespace longhaul
