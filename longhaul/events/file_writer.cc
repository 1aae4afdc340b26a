#include "longhaul/events/file_writer.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/events/scalar_watch.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/proto/meta_graph.pb.h"

namespace longhaul {

namespace {

FileSystem& files_of(const FileWriterOptions& options) {
  return options.files ? *options.files : FileSystem::real();
}

// In the course of a training nothing is made in the place of what it lost. One that is another's is refused by writes.
void refuse_if_away(FileSystem& files, const std::string& directory) {
  try {
    check_directory_owner(files, join_path(directory, "events"));
  } catch (const DirectoryLostError&) {
  }
}

// Makes the directory, since what comes after it in the constructor needs it.
std::string made_directory(std::string_view logdir, const FileWriterOptions& options) {
  if (strip_file_scheme(logdir).empty()) throw InvalidArgumentError("a FileWriter needs a logdir");
  const std::string path = absolute_directory(logdir);
  refuse_if_away(files_of(options), path);
  files_of(options).make_directories(path);
  return path;
}

void check_file_name(const char* what, const std::string& name) {
  if (!name.empty() && name.find('/') == std::string::npos && name != "." && name != "..") return;
  throw InvalidArgumentError(fmt::format("\"{}\" cannot be the name of {}: it must be a valid file name", name, what));
}

}  // namespace

FileWriter::FileWriter(std::string_view logdir, const FileWriterOptions& options)
    : logdir_(made_directory(logdir, options)),
      files_(files_of(options)),
      clock_(options.clock ? *options.clock : Clock::real()),
      writer_(logdir_, options) {}

FileWriter::FileWriter(std::string_view logdir, const proto::GraphDef& graph, const FileWriterOptions& options)
    : FileWriter(logdir, options) {
  proto::MetaGraphDef meta;
  *meta.mutable_graph_def() = graph;
  add_graph(graph.SerializeAsString());
  add_meta_graph(meta.SerializeAsString());
}

void FileWriter::add_summary(const proto::Summary& summary, int64_t global_step) {
  tell_scalar_watches(logdir_, summary, global_step);
  add(EventField::kSummary, has_metadata(summary) ? without_known_metadata(summary) : summary.SerializeAsString(),
      global_step);
}

void FileWriter::add_summary(std::string_view serialized_summary, int64_t global_step) {
  tell_scalar_watches(logdir_, serialized_summary, global_step);
  if (!has_metadata(serialized_summary)) return add(EventField::kSummary, serialized_summary, global_step);
  add(EventField::kSummary, without_known_metadata(parse_summary(serialized_summary)), global_step);
}

std::string FileWriter::without_known_metadata(proto::Summary summary) {
  MutexLock lock(tags_mutex_);
  const uint64_t disruptions = writer_.disruptions();
  if (std::exchange(disruptions_seen_, disruptions) != disruptions) described_tags_.clear();
  for (auto& value : *summary.mutable_value())
    if (value.has_metadata() && !described_tags_.insert(value.tag()).second) value.clear_metadata();
  return summary.SerializeAsString();
}

void FileWriter::add_scalar(std::string_view tag, float value, int64_t global_step) {
  tell_scalar_watches(logdir_, tag, value, global_step);
  constexpr size_t kUsualTag = 256;
  if (tag.size() <= kUsualTag) {
    char record[kScalarRecordOverhead + kUsualTag];
    add_record({record, encode_scalar_record(record, clock_.wall_time(), global_step, tag, value)});
  } else {
    std::string record(kScalarRecordOverhead + tag.size(), '\0');
    record.resize(encode_scalar_record(record.data(), clock_.wall_time(), global_step, tag, value));
    add_record(record);
  }
}

void FileWriter::add_event(const proto::Event& event) {
  if (event.has_summary()) tell_scalar_watches(logdir_, event.summary(), event.step());
  std::string record;
  append_record(record, event.SerializeAsString());
  add_record(record);
}

void FileWriter::add_graph(std::string_view graph_def, int64_t global_step) {
  add(EventField::kGraphDef, graph_def, global_step);
}

void FileWriter::add_meta_graph(std::string_view meta_graph_def, int64_t global_step) {
  add(EventField::kMetaGraphDef, meta_graph_def, global_step);
}

void FileWriter::add_session_log(const proto::SessionLog& session_log, int64_t global_step) {
  add(EventField::kSessionLog, session_log.SerializeAsString(), global_step);
}

void FileWriter::add_run_metadata(const proto::RunMetadata& run_metadata, const std::string& tag, int64_t global_step) {
  {
    MutexLock lock(tags_mutex_);
    if (!run_metadata_tags_.insert(tag).second)
      throw InvalidArgumentError(
          fmt::format("run metadata \"{}\": The provided tag was already used for this event type", tag));
  }
  proto::TaggedRunMetadata tagged;
  tagged.set_tag(tag);
  tagged.set_run_metadata(run_metadata.SerializeAsString());
  add(EventField::kTaggedRunMetadata, tagged.SerializeAsString(), global_step);
}

void FileWriter::add_log_message(proto::LogMessage::Level level, std::string_view message) {
  proto::LogMessage log;
  log.set_level(level);
  log.set_message(std::string(message));
  std::string record;
  append_event_record(record, clock_.wall_time(), 0, EventField::kLogMessage, log.SerializeAsString());
  writer_.add(record, AsyncEventWriter::IfFull::kDrop);
}

void FileWriter::add_plugin_asset(const std::string& plugin, const std::string& asset, std::string_view contents) {
  check_file_name("a plugin", plugin);
  check_file_name("an asset", asset);
  if (is_closed()) return warn_closed("add an asset");
  const std::string directory = join_path(join_path(logdir_, "plugins"), plugin);
  check_directory_owner(files_, join_path(directory, asset));
  if (!files_.is_directory(logdir_)) throw NotFoundError(fmt::format("{}: the directory is gone", logdir_));
  files_.make_directories(directory);
  write_file_atomically(files_, join_path(directory, asset), contents);
}

void FileWriter::flush_before(const Deadline* deadline) {
  if (!writer_.flush_before(deadline)) warn_closed("flush");
}

void FileWriter::close_before(const Deadline* deadline) {
  writer_.close_before(deadline);
}

FileWriter::WaitLimit::WaitLimit(FileWriter& writer, const Deadline& deadline)
    : writer_(writer.writer_), notice_(&deadline, [&waited_for = writer_] { waited_for.notify_waits(); }) {
  writer_.limit_waits(&deadline, kMost);
}

FileWriter::WaitLimit::~WaitLimit() {
  writer_.limit_waits(nullptr, kMost);
}

void FileWriter::reopen() {
  {
    MutexLock lock(tags_mutex_);
    if (writer_.is_closed()) described_tags_.clear();
  }
  writer_.reopen();
}

void FileWriter::add(EventField field, std::string_view content, int64_t global_step) {
  std::string record;
  append_event_record(record, clock_.wall_time(), global_step, field, content);
  add_record(record);
}

void FileWriter::add_record(std::string_view record) {
  if (!writer_.add(record)) warn_closed("add an event");
}

void FileWriter::warn_closed(const char* what) const {
  log_warning("{}: the FileWriter for {} is closed; nothing is written", what, logdir_);
}

}  // namespace longhaul
