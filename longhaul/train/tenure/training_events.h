#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/graph/graph.h"
#include "longhaul/io/file.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// What the event file of a training run is told besides its summaries: the graph, once, where a session begins, and
// where the run ends. Without a writer all of it is nothing. One thread at a time; the writer is for any.
class TrainingEvents {
 public:
  // The graph as it is now, with what the saver adds to its meta graph. Both may be null.
  TrainingEvents(std::shared_ptr<FileWriter> writer, const Graph& graph, const Saver* saver);

  const std::shared_ptr<FileWriter>& writer() const { return writer_; }

  void begin();                    // another file, if the one before is closed
  void write_graph();              // once in each
  void write_start(int64_t step);  // readers drop what they have of this step and later ones

  // The event that it stops, with the last checkpoint, unless the directory is not ours to write to; then the file is
  // closed. What is missing in it is logged. A second time: nothing.
  void close(const std::string& last_checkpoint, bool is_refused);

 private:
  const std::shared_ptr<FileWriter> writer_;
  std::string graph_, meta_graph_;  // serialised
  bool graph_is_written_ = false;
};

// Replaces graph.pbtxt in the directory of a training run.
void write_graph_text(const Graph& graph, const std::string& directory, FileSystem& files);

}  // namespace longhaul
