#include "longhaul/train/reporting/run_events.h"

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"

namespace longhaul {
namespace {

constexpr std::string_view kFailedSaves = "checkpoint/failed_saves";

proto::SessionLog session_log(proto::SessionLog::SessionStatus status, const std::string& message = "") {
  proto::SessionLog log;
  log.set_status(status);
  log.set_msg(message);
  return log;
}

}  // namespace

void write_start(FileWriter& writer, int64_t step) {
  writer.add_session_log(session_log(proto::SessionLog::START), step);
}

void write_checkpoint_taken(FileWriter& writer, const std::string& save_path, const std::string& prefix) {
  proto::SessionLog log = session_log(proto::SessionLog::CHECKPOINT, prefix);
  log.set_checkpoint_path(save_path);
  writer.add_session_log(log, split_step(prefix).step.value_or(0));
}

void write_failed_save(FileWriter& writer, const std::string& message, int failures_in_a_row, int64_t step) {
  writer.add_log_message(proto::LogMessage::ERROR, message);
  writer.add_scalar(kFailedSaves, static_cast<float>(failures_in_a_row), step);
}

void write_saves_work_again(FileWriter& writer, int64_t step) {
  writer.add_scalar(kFailedSaves, 0, step);
}

void write_stop(FileWriter& writer, const std::string& last_checkpoint) {
  writer.add_session_log(session_log(proto::SessionLog::STOP, last_checkpoint));
}

void flush_or_log(FileWriter& writer, const Deadline* deadline) {
  try {
    writer.flush_before(deadline);
  } catch (...) {
    log_debug("events are buffered until {} can be written: {}", writer.logdir(), message_of(std::current_exception()));
  }
}

}  // namespace longhaul
