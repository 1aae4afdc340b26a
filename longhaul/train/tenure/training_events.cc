#include "longhaul/train/tenure/training_events.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/train/reporting/run_events.h"

namespace longhaul {
namespace {

template <typename Work>
void try_to(const FileWriter& writer, const Work& work) {
  try {
    work();
  } catch (...) {
    log_error("the event file in {} is incomplete: {}", writer.logdir(), message_of(std::current_exception()));
  }
}

}  // namespace

TrainingEvents::TrainingEvents(std::shared_ptr<FileWriter> writer, const Graph& graph, const Saver* saver)
    : writer_(std::move(writer)) {
  if (!writer_) return;
  graph_ = proto::serialize(to_graph_def(graph, /*add_shapes=*/true));
  meta_graph_ = proto::serialize(saver != nullptr ? saver->export_meta_graph() : to_meta_graph_def(graph));
}

FileWriter* TrainingEvents::writer_or_log(std::string_view why_not) const {
  if (!writer_ && !absence_is_logged_.exchange(true)) log_info("there is no summary writer: {}", why_not);
  return writer_.get();
}

void TrainingEvents::begin() {
  if (writer_) writer_->reopen();
}

void TrainingEvents::write_graph() {
  if (!writer_ || graph_is_written_) return;
  writer_->add_graph(graph_);
  writer_->add_meta_graph(meta_graph_);
  graph_is_written_ = true;
}

void TrainingEvents::write_start(int64_t step) {
  if (writer_) longhaul::write_start(*writer_, step);
}

void TrainingEvents::close(const std::string& last_checkpoint, bool is_refused, const Deadline* deadline) {
  graph_is_written_ = false;
  if (!writer_ || writer_->is_closed()) return;
  if (deadline != nullptr) flush_or_log(*writer_, deadline);  // else a full queue on a disk that hangs has no deadline
  if (!is_refused) try_to(*writer_, [&] { write_stop(*writer_, last_checkpoint); });
  try_to(*writer_, [&] { writer_->close_before(deadline); });
}

void TrainingEvents::flush(const Deadline* deadline) {
  if (writer_ && !writer_->is_closed()) flush_or_log(*writer_, deadline);
}

void TrainingEvents::release(const Deadline* deadline) {
  flush(deadline);
  const std::shared_ptr<FileWriter> writer = std::exchange(writer_, nullptr);
  if (writer.use_count() == 1) try_to(*writer, [&] { writer->close_before(deadline); });
}

void write_graph_text(const Graph& graph, const std::string& directory, FileSystem& files) {
  longhaul::write_graph(to_graph_def(graph, /*add_shapes=*/true), directory, "graph.pbtxt", {.files = &files});
}

}  // namespace longhaul
