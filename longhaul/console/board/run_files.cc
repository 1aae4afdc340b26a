#include "longhaul/console/board/run_files.h"

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/io/records/record.h"
#include "longhaul/proto/parsed_size.h"

namespace longhaul::console {
namespace {

// The last bytes before an offset, with the checksum of what was read last: by them a file is known again.
std::string bytes_before(const ReadableFile& file, uint64_t offset) {
  constexpr uint64_t kRemembered = 64;
  std::string bytes(std::min(kRemembered, offset), '\0');
  bytes.resize(file.read(offset - bytes.size(), bytes.data(), bytes.size()));
  return bytes;
}

}  // namespace

RunFiles::End RunFiles::read(const UseEvent& use) {
  there_ = event_files(directory_, files_);
  left_out_ = there_.size() - std::min(there_.size(), kMostEventFiles);
  there_.erase(there_.begin(), there_.begin() + static_cast<ptrdiff_t>(left_out_));
  for (const std::string& path : there_) {
    const End end = read_file(path, use);
    if (end != End::kRead) return end;
  }
  return End::kRead;
}

RunFiles::End RunFiles::read_file(const std::string& path, const UseEvent& use) {
  File& file = known_[path];
  try {
    return read_on(path, file, use);
  } catch (const NotFoundError&) {
    file.problem.clear();
  } catch (const DataLossError& error) {  // it is read again when it has changed
    file.problem = error.what();
  } catch (const std::exception& error) {  // it may pass
    file.problem = error.what();
    file.is_quiet = false;
  }
  return End::kRead;
}

// A write within the same tick of the file system's clock leaves the time as it was.
RunFiles::End RunFiles::read_on(const std::string& path, File& file, const UseEvent& use) {
  const double modified_at = files_.modified_at(path);
  if (file.is_quiet && modified_at == file.modified_at) return End::kRead;
  const auto opened = files_.open(path);
  if (bytes_before(*opened, file.offset) != file.end_of_read) return End::kReplaced;
  file.is_quiet = modified_at == file.modified_at;
  file.modified_at = modified_at;
  file.problem.clear();
  const uint64_t before = file.offset;
  const auto remember = [&] {
    if (file.offset == before) return;
    file.is_quiet = false;
    file.end_of_read = bytes_before(*opened, file.offset);
  };
  bool is_stopped = false;
  try {
    is_stopped = !read_records(*opened, path, file, use);
  } catch (...) {
    remember();
    throw;
  }
  remember();
  return is_stopped ? End::kStopped : End::kRead;
}

// False: use() wants no further one.
bool RunFiles::read_records(const ReadableFile& opened, const std::string& path, File& file, const UseEvent& use) {
  RecordReader records(opened, path, file.offset, kMostRecordBytes);
  const google::protobuf::LogSilencer silence;  // of what is no event the board tells
  std::string_view payload;
  while (records.next(payload) == RecordReader::Result::kRecord) {
    const uint64_t offset = std::exchange(file.offset, records.offset());
    proto::Event event;
    if (!proto::parse_within_limits(payload, &event)) {
      ++file.skipped;
    } else if (!use(event, {path, offset})) {
      return false;
    }
  }
  return true;
}

std::vector<std::string> RunFiles::problems() const {
  std::vector<std::string> all;
  size_t left_out = 0;
  const auto add = [&](std::string problem) {
    if (all.size() < kMostProblems) {
      all.push_back(std::move(problem));
    } else {
      ++left_out;
    }
  };
  for (const std::string& path : there_) {
    const auto file = known_.find(path);
    if (file == known_.end()) continue;
    if (!file->second.problem.empty()) add(file->second.problem);
    if (file->second.skipped > 0) {
      add(fmt::format("{}: {} records are no events, and left out", path, file->second.skipped));
    }
  }
  if (left_out > 0) all.push_back(fmt::format("{} more of its event files have problems", left_out));
  if (left_out_ > 0)
    all.push_back(fmt::format("{} event files are left out: the {} newest are read", left_out_, kMostEventFiles));
  return all;
}

proto::Event event_in(FileSystem& files, const EventPlace& place) {
  const auto file = files.open(place.path);
  RecordReader records(*file, place.path, place.offset, kMostRecordBytes);
  std::string_view payload;
  proto::Event event;
  if (records.next(payload) != RecordReader::Result::kRecord || !proto::parse_within_limits(payload, &event)) {
    throw NotFoundError(fmt::format("{} has no event at {} any more", place.path, place.offset));
  }
  return event;
}

}  // namespace longhaul::console
