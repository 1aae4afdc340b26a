#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/events/file_writer.h"
#include "longhaul/graph/graph.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// Writes the events of a training run other than summaries: the graph (once), the start of each session, and the end of
// the run. Without a writer it does nothing. One thread at a time may call; the writer may be used from any thread.
class TrainingEvents {
 public:
  // Keeps a copy of the graph in its present state, with the saver's part of the meta graph. `writer` and `saver` may
  // be null.
  TrainingEvents(std::shared_ptr<FileWriter> writer, const Graph& graph, const Saver* saver);

  const std::shared_ptr<FileWriter>& writer() const { return writer_; }
  FileWriter* writer_or_log(std::string_view why_not) const;  // if there is none, logs the reason, once

  void begin();                    // opens a new file if the previous one is closed
  void write_graph();              // once in each file
  void write_start(int64_t step);  // makes readers drop earlier events of this step and later ones

  // Writes the stop event, which names the last checkpoint, and closes the file. If is_refused, this process may not
  // write to the directory, and the stop event is left out. Logs events that could not be written. A second call does
  // nothing. These three wait for a file system that hangs as FileWriter::close_before() does; nullptr: no deadline.
  void close(const std::string& last_checkpoint, bool is_refused, const Deadline* deadline = nullptr);
  void flush(const Deadline* deadline = nullptr);  // logs events that could not be written

  // Flushes and releases the writer. Unless others hold it, the file is closed, without a stop event.
  void release(const Deadline* deadline = nullptr);

 private:
  std::shared_ptr<FileWriter> writer_;
  std::string graph_, meta_graph_;  // serialised
  bool graph_is_written_ = false;
  mutable std::atomic<bool> absence_is_logged_{false};
};

// Replaces graph.pbtxt in the directory of a training run.
void write_graph_text(const Graph& graph, const std::string& directory, FileSystem& files);

}  // namespace longhaul
