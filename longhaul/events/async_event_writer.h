#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/events/event_handover.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

class Deadline;

struct FileWriterOptions {
  // The most events, and bytes, that wait for the writer thread. At most as many again are being written. If the queue
  // is full, adding blocks. (TensorFlow's max_queue is 10, because it hands each event from one thread to the other
  // separately. Here, events are handed over in batches, which need room.)
  size_t max_queue = 65536;
  size_t max_queue_bytes = size_t{16} << 20;

  Seconds flush_secs{120};        // an event is in the file after this time at the latest, even if no others follow
  std::string filename_suffix{};  // the end of the file's name; if not empty, the file is created at the start
  Seconds retry_secs{10};         // above 0; from a failed write to the next attempt, in a new file
  Seconds hang_secs{60};          // above 0; a file operation that takes longer hangs, and is no longer waited for
  FileSystem* files = nullptr;    // nullptr: the machine's; both outlive the writer's thread, even one left behind
  Clock* clock = nullptr;
};

// Writes records to the event files of one directory, on its own thread ("lh-events").
//
//   open --close--> closed --reopen--> open
//
// The thread creates a file when the first record arrives. If a write fails (a full disk, a deleted file), it logs the
// error, abandons the file, and after retry_secs writes the same records to a new one; some records may then be in
// both. Until that succeeds, adding never blocks: records beyond the limits are dropped and counted. Only the writer
// thread logs this, never a thread that adds: it logs the first error, the first drop and, when writing works again,
// both counts. Any thread may call.
//
// If the file system hangs (a network mount that does not answer), only this thread hangs with it, and who creates the
// file at the start, for filename_suffix: the constructor, and reopen(). Others wait as long as it gets on, however
// slowly, but no longer than hang_secs for a single file operation. Then flush() and close() give up, and an add to a
// full queue drops the record; so does each further call, at once, until the thread gets on. The first of them logs it,
// an add too, unless it is IfFull::kDrop, as those of log sinks are. Whoever closes or destroys the writer leaves the
// thread behind. If the file system answers later, the thread writes what is left into its file, makes no new file,
// logs what became of the events, and ends; reopen() lets it go on.
//
// The writer never creates the directory, so that an unmounted one is not recreated on another disk. If this process
// has locked the directory, or one above it, each write calls check_directory_owner() first.
class AsyncEventWriter {
 public:
  // The directory must exist. The file system and the clock must outlive the thread, even one that is left behind.
  // InvalidArgumentError: hang_secs or retry_secs is not above 0, or flush_secs not 0 or above.
  AsyncEventWriter(std::string directory, FileWriterOptions options);
  ~AsyncEventWriter();

  // Queues the record. If the queue is full and writing works, blocks, or drops and counts the record. Returns false if
  // closed; nothing was queued then.
  using IfFull = EventHandover::IfFull;
  bool add(std::string_view record, IfFull if_full = IfFull::kWait) {
    const EventHandover::Added added = handover_.add(record, if_full);
    if (added == EventHandover::Added::kGaveUp) log_drops();
    return added != EventHandover::Added::kClosed;
  }

  // On return, the kernel has all records that were added before. If that fails, throws the error; the records are kept
  // and retried. Waits for half of the time until the deadline at most (nullptr: none), even if that is set meanwhile.
  // UnavailableError: the file system hangs, or there was no time; this is logged once until it works again. Returns
  // false if closed.
  bool flush_before(const Deadline* deadline);

  // Writes the waiting records, syncs them to the disk and stops the thread. A second call does nothing. If records
  // were dropped, throws after closing; the message says how many and why. Does not wait for space on a full disk, and
  // for a hanging one as flush_before() does: UnavailableError, and the thread is left behind.
  void close_before(const Deadline* deadline);
  void reopen();  // std::system_error: the thread cannot be started; the writer stays closed
  // Of several threads in close_before() and reopen(), one goes first. The others wait for it as flush_before() waits:
  // UnavailableError, and the call has done nothing.

  // See FileWriter::WaitLimit.
  void limit_waits(const Deadline* deadline, Seconds most) { handover_.limit_waits(deadline, most); }
  void notify_waits() { handover_.notify_waits(); }

  bool is_closed() const { return !handover_.is_open(); }
  std::string last_error() const { return handover_.last_error(); }  // of writing; empty: none
  uint64_t dropped_events() const { return handover_.dropped_events(); }

  // Increases when writing begins to fail and when it works again. Records that were added before may be lost.
  uint64_t disruptions() const { return handover_.disruptions(); }

 private:
  class Turn;
  class Worker;

  void log_drops();  // unless the hang is known
  void keep_thread(NamedThread thread);
  NamedThread take_thread();
  [[noreturn]] void leave_behind(NamedThread thread);

  const std::shared_ptr<Worker> worker_;  // its thread shares it
  EventHandover& handover_;               // the worker's
  Mutex thread_mutex_;                    // nobody waits under it
  NamedThread thread_ GUARDED_BY(thread_mutex_);
};

}  // namespace longhaul
