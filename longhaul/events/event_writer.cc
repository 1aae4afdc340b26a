#include "longhaul/events/event_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "longhaul/events/event_encoding.h"

namespace longhaul {

namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr int64_t kLargestSeconds = 9'999'999'999;  // ten digits, beyond which names no longer sort by time

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  return name[0] ? name : "localhost";
}

// The seconds in the name of an event file; 0 for other names.
int64_t seconds_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  int64_t seconds = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), seconds);
  bool is_number = error == std::errc() && seconds > 0 && seconds < kLargestSeconds;
  return is_number ? seconds : 0;
}

int64_t newest_seconds(FileSystem& files, const std::string& directory) {
  int64_t newest = 0;
  for (const auto& name : files.list(directory)) newest = std::max(newest, seconds_of(name));
  return newest;
}

}  // namespace

EventWriter::EventWriter(FileSystem& files, Clock& clock, const std::string& directory, const std::string& suffix)
    : files_(files) {
  create(clock, directory, suffix);
  std::string version;
  append_event_record(version, std::floor(clock.wall_time()), 0, EventField::kFileVersion, kFileVersion);
  try {
    write(version);
  } catch (...) {
    abandon();
    throw;
  }
}

void EventWriter::create(Clock& clock, const std::string& directory, const std::string& suffix) {
  constexpr int kAttempts = 100;  // another process may take the name first, but not each time
  const std::string host = host_name();
  auto seconds = std::max(static_cast<int64_t>(clock.wall_time()), newest_seconds(files_, directory) + 1);
  for (int attempt = 1; !file_; ++attempt, ++seconds) {
    path_ = join_path(directory, fmt::format("{}{:010}.{}{}", kPrefix, seconds, host, suffix));
    try {
      file_ = files_.create(path_, FileSystem::IfExists::kFail);
    } catch (const AlreadyExistsError&) {
      if (attempt == kAttempts) throw;
    }
  }
}

void EventWriter::append(std::string_view records) {
  write(records);
  is_empty_ = false;
}

void EventWriter::write(std::string_view records) {
  if (!files_.exists(path_)) throw NotFoundError(fmt::format("append to {}: the file was deleted", path_));
  file_->append(records);
  file_->flush();
}

void EventWriter::close() {
  file_->sync();
  file_->close();
  files_.sync_directory(directory_name(path_));
}

void EventWriter::abandon() {
  file_.reset();
  try {
    if (is_empty_) files_.remove(path_);
  } catch (...) {  // also of odd types, from a program's file system
  }
}

}  // namespace longhaul
