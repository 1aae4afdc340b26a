#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>

#include "longhaul/base/deadline.h"
#include "longhaul/base/mutex.h"
#include "longhaul/events/async_event_writer.h"
#include "longhaul/events/event_encoding.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/proto/event.pb.h"

namespace longhaul {

namespace proto {
class GraphDef;
}

// Writes event files, which TensorBoard shows, in a directory.
//
//   FileWriter writer("runs/demo");
//   writer.add_scalar("loss", 0.5f, step);
//   writer.close();                          // throws if anything was lost
//
// Adding takes well under a microsecond and does no I/O; the writer's own thread writes. The file is created with the
// first event. An added event is in the file after at most flush_secs, or after flush(); after close(), it survives a
// crash of the machine. Events from one thread keep their order, and so do events that several threads add in a known
// order. A failing or hanging disk never stops training: see AsyncEventWriter. Any thread may call any method.
//
// After close(), all add methods and flush() only log a warning, until reopen().
class FileWriter {
 public:
  // Creates the directory and its parents, and throws if that fails; they are not created again later. A leading
  // "file://" is dropped. A relative path is resolved against the working directory at this time.
  explicit FileWriter(std::string_view logdir, const FileWriterOptions& options = {});
  // Also adds the graph, and a meta graph with only that graph, at step 0. For a Graph, pass to_graph_def(graph, true).
  FileWriter(std::string_view logdir, const proto::GraphDef& graph, const FileWriterOptions& options = {});

  const std::string& logdir() const { return logdir_; }  // absolute

  // Adds a summary. The second form takes it serialised (InvalidArgumentError: the bytes are not a summary). Only the
  // first value of a tag keeps its metadata, because readers remember it; counted since the last (re)opening, or since
  // a file was lost to an error.
  void add_summary(const proto::Summary& summary, int64_t global_step = 0);
  void add_summary(std::string_view serialized_summary, int64_t global_step = 0);

  // The same as add_summary(scalar_summary(tag, value), global_step), and much faster.
  void add_scalar(std::string_view tag, float value, int64_t global_step = 0);

  void add_event(const proto::Event& event);  // unchanged, including its wall_time

  // These take a serialised GraphDef or MetaGraphDef.
  void add_graph(std::string_view graph_def, int64_t global_step = 0);
  void add_meta_graph(std::string_view meta_graph_def, int64_t global_step = 0);

  void add_session_log(const proto::SessionLog& session_log, int64_t global_step = 0);  // 0: no step

  // InvalidArgumentError: the tag was used before.
  void add_run_metadata(const proto::RunMetadata& run_metadata, const std::string& tag, int64_t global_step = 0);

  // Adds a message, without a step. For the library's own log, see event_log_sink() in event_log.h. Does not wait if
  // the queue is full, and does nothing on a closed writer.
  void add_log_message(proto::LogMessage::Level level, std::string_view message);

  // Writes a file that a TensorBoard plugin needs next to the events: plugins/<plugin>/<asset> in the directory. Writes
  // on the caller's thread, and throws what the file system throws. InvalidArgumentError: `plugin` or `asset` is not a
  // file name.
  void add_plugin_asset(const std::string& plugin, const std::string& asset, std::string_view contents);

  // On return, everything that was added before is in the file. If that fails, throws the error; the events are retried
  // later. UnavailableError: the file system hangs (FileWriterOptions::hang_secs); events may be missing.
  void flush() { flush_before(nullptr); }

  // Writes the remaining events, syncs them to the disk and ends the thread. Throws if events were lost; the writer is
  // then closed too. Does nothing if already closed. UnavailableError: the file system hangs; the thread is left
  // behind, and writes the events if the file system works again. The destructor does the same, but logs the error.
  void close() { close_before(nullptr); }

  // The same, but both wait for a file system that hangs for half of the time until the deadline at most (though for a
  // second at least), even if that is set during the wait; the other half is for what follows. nullptr: no deadline.
  // close() and reopen() wait in the same way for another thread's close() or reopen(): UnavailableError, and the call
  // has done nothing.
  void flush_before(const Deadline* deadline);
  void close_before(const Deadline* deadline);

  // While it exists, all calls together, with a deadline of their own or without one (above all an add to a full
  // queue), wait for a file system that hangs for kMost of the time until this deadline at most, and each for half of
  // it at most, so that training gets to its last checkpoint. As ever, each may wait for a second. One at a time. The
  // writer must outlive it; the deadline, the calls too that began meanwhile.
  class WaitLimit {
   public:
    static constexpr Seconds kMost{5};

    WaitLimit(FileWriter& writer, const Deadline& deadline);
    ~WaitLimit();
    WaitLimit(const WaitLimit&) = delete;
    WaitLimit& operator=(const WaitLimit&) = delete;

   private:
    AsyncEventWriter& writer_;
    const Deadline::Notice notice_;
  };

  // Continues in a new file, which sorts after the old one. Does nothing if open.
  void reopen();

  bool is_closed() const { return writer_.is_closed(); }
  std::string last_error() const { return writer_.last_error(); }  // of writing; empty: none
  uint64_t dropped_events() const { return writer_.dropped_events(); }

 private:
  void add(EventField field, std::string_view content, int64_t global_step);
  void add_record(std::string_view record);
  void warn_closed(const char* what) const;
  std::string without_known_metadata(proto::Summary summary);

  const std::string logdir_;
  FileSystem& files_;
  Clock& clock_;
  AsyncEventWriter writer_;

  Mutex tags_mutex_;
  std::unordered_set<std::string> described_tags_ GUARDED_BY(tags_mutex_);
  uint64_t disruptions_seen_ GUARDED_BY(tags_mutex_) = 0;  // at the time when described_tags_ was last emptied
  std::unordered_set<std::string> run_metadata_tags_ GUARDED_BY(tags_mutex_);
};

}  // namespace longhaul
