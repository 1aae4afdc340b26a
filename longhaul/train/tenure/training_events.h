#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/graph/graph.h"
#include "longhaul/io/file.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// The events of a training run other than summaries: the graph, once, the start of each session, and the end of the
// run. Without a writer it does nothing. One thread at a time; the writer may be used from any thread.
class TrainingEvents {
 public:
  // Records the graph as it is now, with the saver's part of the meta graph. `writer` and `saver` may be null.
  TrainingEvents(std::shared_ptr<FileWriter> writer, const Graph& graph, const Saver* saver);

  const std::shared_ptr<FileWriter>& writer() const { return writer_; }

  void begin();                    // opens another file, if the previous one is closed
  void write_graph();              // once in each file
  void write_start(int64_t step);  // readers drop what they have of this step and later ones

  // Writes the stop event, which names the last checkpoint, unless the directory is not ours to write to; then closes
  // the file. Logs events that could not be written. A second call does nothing.
  void close(const std::string& last_checkpoint, bool is_refused);
  void flush();  // logs what could not be written

  // Flushes, and lets go of the writer: the file is closed, without a stop event, unless others hold it.
  void release();

 private:
  std::shared_ptr<FileWriter> writer_;
  std::string graph_, meta_graph_;  // serialised
  bool graph_is_written_ = false;
};

// Replaces graph.pbtxt in the directory of a training run.
void write_graph_text(const Graph& graph, const std::string& directory, FileSystem& files);

}  // namespace longhaul
