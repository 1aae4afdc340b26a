#include "longhaul/checkpoint/directory/reader_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <random>
#include <string_view>
#include <utility>

#include "longhaul/base/excerpt.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/directory/listed_name.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/io/process/process_identity.h"

namespace longhaul {
namespace {

constexpr std::string_view kNoteFirstLine = "longhaul reader note 1";
constexpr std::string_view kPinName = "pin.", kMetricName = "metric.";
constexpr size_t kMostNoteBytes = 8192, kNoteTokenDigits = 32;
constexpr size_t kMostNotes = 1000;
constexpr double kMostPinSecs = 24 * 3600;

std::string new_note_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += fmt::format("{:08x}", random());
  return token;
}

bool is_named(std::string_view name, std::string_view kind) {
  return name.starts_with(kind) && name.size() == kind.size() + kNoteTokenDigits &&
         name.find_first_not_of("0123456789abcdef", kind.size()) == name.npos;
}

std::string_view take_line(std::string_view& text, const std::string& path) {
  const size_t end = text.find('\n');
  if (end == text.npos) throw DataLossError(path + ": a line is missing or incomplete");
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

std::string_view take_value(std::string_view& text, std::string_view key, const std::string& path) {
  const std::string_view line = take_line(text, path);
  if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ') return line.substr(key.size() + 1);
  throw DataLossError(fmt::format("{}: \"{}\" is no line of a reader's note", path, excerpt(std::string(line))));
}

std::string text_of(FileSystem& files, const std::string& path) {
  const auto file = files.open(path);
  std::string text(kMostNoteBytes + 1, '\0');
  text.resize(file->read(0, text.data(), text.size()));
  if (text.size() > kMostNoteBytes)
    throw DataLossError(fmt::format("{}: it has more than {} bytes", path, kMostNoteBytes));
  return text;
}

// Writes a note next to the checkpoint. Returns its path.
std::string write_note(FileSystem& files, const std::string& prefix, std::string_view kind, ReaderNote note) {
  note.checkpoint = base_name(prefix);
  if (!is_listed_name(note.checkpoint)) {
    throw InvalidArgumentError(fmt::format("\"{}\" cannot be the name of a checkpoint", excerpt(prefix)));
  }
  note.reader.token = new_note_token();
  note.reader.process = this_process();
  const std::string folder = join_path(directory_name(prefix), kReadersFolder);
  if (files.exists(folder) && !files.is_directory(folder)) {
    throw FailedPreconditionError(folder + " is not a folder, and readers cannot leave notes there: move it away");
  }
  files.make_directories(folder);
  std::string path = join_path(folder, std::string(kind) + note.reader.token);
  write_file_atomically(files, path, format_reader_note(note));
  return path;
}

// The wall time, but later than that of the metric before by a millisecond, which is what a note tells: of two metrics
// that one process gives a checkpoint the later one counts, however soon it comes.
double time_of_next_metric() {
  static std::mutex mutex;
  static int64_t last = 0;
  const std::lock_guard lock(mutex);
  last = std::max(last + 1, static_cast<int64_t>(Clock::real().wall_time() * 1e3));
  return static_cast<double>(last) / 1e3;
}

// A Saver names what it is about to delete in the state file, and only then looks for pins.
bool is_marked_for_deletion(FileSystem& files, const std::string& prefix) {
  const std::vector<std::string> marked =
      read_checkpoint_state(files, directory_name(prefix)).state.paths_marked_for_deletion;
  return std::any_of(marked.begin(), marked.end(),
                     [&](const std::string& one) { return base_name(one) == base_name(prefix); });
}

// Whether the pin still counts. `age`: of its file, in seconds; less than 0 if a clock was wrong.
bool is_living(const OwnerRecord& reader, double age) {
  switch (state_of(reader.process)) {
    case ProcessState::kRunning: return true;
    case ProcessState::kGone: return false;
    case ProcessState::kUnknown: break;
  }
  return std::abs(age) < std::min(reader.limit, kMostPinSecs);
}

class NotesReader {
 public:
  NotesReader(FileSystem& files, const std::string& folder, double now) : files_(files), folder_(folder), now_(now) {}

  void read(const std::string& name) {
    const std::string path = join_path(folder_, name);
    const double age = now_ - files_.modified_at(path);
    try {
      const bool is_pin = is_named(name, kPinName);
      if (!is_pin && !is_named(name, kMetricName)) throw DataLossError(path + ": it has not the name of a note");
      const ReaderNote note = parse_reader_note(text_of(files_, path), path);
      if (is_pin == note.metric.has_value()) throw DataLossError(path + ": it has not the name of such a note");
      take(note, path, age);
    } catch (const DataLossError& error) {
      log_debug("{}", error.what());
      if (std::abs(age) > kMostPinSecs && !files_.is_directory(path)) notes_.worthless.push_back(path);
    }
  }

  ReaderNotes take_notes() {
    std::sort(metrics_.begin(), metrics_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [time, metric] : metrics_) notes_.metrics.push_back(std::move(metric));
    return std::move(notes_);
  }

 private:
  void take(const ReaderNote& note, const std::string& path, double age) {
    if (note.metric) {
      metrics_.push_back({note.reader.heartbeat, {note.checkpoint, *note.metric, path}});
    } else if (is_living(note.reader, age)) {
      notes_.pinned.insert(note.checkpoint);
    } else {
      notes_.worthless.push_back(path);
    }
  }

  FileSystem& files_;
  const std::string folder_;
  const double now_;
  ReaderNotes notes_;
  std::vector<std::pair<double, ReaderNotes::Metric>> metrics_;  // with the times at which they were written
};

}  // namespace

std::string format_reader_note(const ReaderNote& note) {
  return fmt::format("{}\ncheckpoint {}\n{}\n{}", kNoteFirstLine, note.checkpoint,
                     note.metric ? fmt::format("metric {}", *note.metric) : "is read", format_owner(note.reader));
}

ReaderNote parse_reader_note(const std::string& text, const std::string& path) {
  std::string_view rest = text;
  if (take_line(rest, path) != kNoteFirstLine) throw DataLossError(path + ": it is no reader's note");
  ReaderNote note;
  note.checkpoint = take_value(rest, "checkpoint", path);
  if (!is_listed_name(note.checkpoint)) {
    throw DataLossError(fmt::format("{}: \"{}\" is no checkpoint of this directory", path, excerpt(note.checkpoint)));
  }
  if (!rest.starts_with("is ")) {
    const std::string_view number = take_value(rest, "metric", path);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc{} || end != number.data() + number.size() || std::isnan(value)) {
      throw DataLossError(fmt::format("{}: \"{}\" is no metric", path, excerpt(std::string(number))));
    }
    note.metric = value;
  } else if (take_value(rest, "is", path) != "read") {
    throw DataLossError(path + ": it is neither a pin nor a metric");
  }
  note.reader = parse_owner(std::string(rest), path);
  return note;
}

CheckpointPin::CheckpointPin(const std::string& prefix, const CheckpointPinOptions& options) : files_(*options.files) {
  const double lasts = options.lasts.count();
  if (!(lasts > 0 && lasts <= kMostPinSecs)) {
    throw InvalidArgumentError(
        fmt::format("a checkpoint cannot be pinned for {} s: want more than 0, at most a day", lasts));
  }
  const std::string path = strip_file_scheme(prefix);
  if (!checkpoint_exists(files_, path)) throw NotFoundError("there is no checkpoint to read: " + prefix);
  const double now = options.clock->wall_time();
  path_ = write_note(files_, path, kPinName, {.reader = {.limit = lasts, .since = now, .heartbeat = now}});
  if (checkpoint_exists(files_, path) && !is_marked_for_deletion(files_, path)) return;
  remove_reader_notes(files_, {path_});
  throw NotFoundError(fmt::format("checkpoint {} was deleted before it could be pinned", prefix));
}

CheckpointPin::~CheckpointPin() {
  remove_reader_notes(files_, {path_});
}

void write_checkpoint_metric(const std::string& prefix, double metric, FileSystem& files) {
  const std::string path = strip_file_scheme(prefix);
  if (!checkpoint_exists(files, path)) {
    throw NotFoundError(
        fmt::format("there is no checkpoint {} that could have the metric {}. If it was deleted while "
                    "it was evaluated, hold a CheckpointPin until its metric is written",
                    prefix, metric));
  }
  if (std::isnan(metric)) {
    log_warning("the metric of checkpoint {} is not a number, and counts as none", prefix);
    return;
  }
  const double now = time_of_next_metric();
  write_note(files, path, kMetricName, {.metric = metric, .reader = {.since = now, .heartbeat = now}});
}

ReaderNotes read_reader_notes(FileSystem& files, const std::string& directory, Clock& clock) {
  const std::string folder = join_path(directory, kReadersFolder);
  try {
    std::vector<std::string> names = names_in(files, folder);
    if (names.size() > kMostNotes) {
      log_warning("{} has {} files: only {} of them are read", folder, names.size(), kMostNotes);
      names.resize(kMostNotes);
    }
    NotesReader reader(files, folder, clock.wall_time());
    for (const std::string& name : names) {
      try {
        reader.read(name);
      } catch (const NotFoundError&) {  // its reader has removed it
      } catch (const Error& error) {
        log_warning("a reader's note is ignored: {}", error.what());
      }
    }
    return reader.take_notes();
  } catch (const Error& error) {
    log_warning("cannot tell which checkpoints are being read: {}", error.what());
  }
  return {};
}

void remove_reader_notes(FileSystem& files, const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    try {
      check_directory_owner(files, path);
      remove_if_exists(files, path);
    } catch (const Error& error) {
      log_debug("{}", error.what());
    }
  }
}

}  // namespace longhaul
