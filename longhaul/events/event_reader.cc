#include "longhaul/events/event_reader.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/proto/parsed_size.h"

namespace longhaul {

EventReader::EventReader(const std::string& path, FileSystem& files, uint64_t offset)
    : path_(path), file_(files.open(path)), records_(*file_, path, offset) {}

std::optional<proto::Event> EventReader::next() {
  const uint64_t offset = records_.offset();
  std::string_view payload;
  const auto result = records_.next(payload);
  is_truncated_ = result == RecordReader::Result::kTruncated;
  if (result != RecordReader::Result::kRecord) return std::nullopt;
  proto::Event event;
  if (!proto::parse_within_limits(payload, &event))
    throw DataLossError(fmt::format("{}: the record at {} is not an event", path_, offset));
  return event;
}

std::vector<std::string> event_files(const std::string& logdir, FileSystem& files) {
  std::vector<std::string> paths;
  for (const auto& name : files.list(logdir))
    if (name.find("tfevents") != std::string::npos) paths.push_back(join_path(logdir, name));
  return paths;
}

}  // namespace longhaul
