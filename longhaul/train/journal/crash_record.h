#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Records, next to the journal, that the process dies of its own fatal signal (docs/formats/run_journal.md): an invalid
// memory access, abort(), an uncaught exception. Signals sent from outside by kill(2), and memory failures, are not
// recorded.
//
// While an instance exists, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (kUsedSignals) are handled, unless they were
// ignored: the handler appends a line to an open file, and then passes the signal on to the previous handler (the
// program's or a sanitizer's) or to the default action, with its core dump. If that handler returns and the program
// continues, this is recorded too; a handler that leaves by siglongjmp() goes unnoticed. A handler that the program
// installs later goes on top of this one, and stays when the last record is destroyed. Works in any thread; for a stack
// overflow, only in the thread that made the record (base/alternate_stack.h). A forked child writes nothing.
//
// Up to 16 may exist at a time, each for its own run. The destructor removes the file if it contains no signal, unless
// the name refers to another file by now.
class CrashRecord {
 public:
  // Replaces any file at `path`. `run`: the journal's number of this run. ResourceExhaustedError: there are 16 already;
  // otherwise the system's error for the file.
  CrashRecord(std::string path, int64_t run);
  ~CrashRecord();
  CrashRecord(const CrashRecord&) = delete;
  CrashRecord& operator=(const CrashRecord&) = delete;

 private:
  const std::string path_;
  const int fd_;
  const int64_t first_line_bytes_;
  const int64_t process_;          // a forked child has a copy
  std::atomic<int>* const place_;  // its slot in the handler's list
};

// The signal that this run died of; nullopt: none is known.
std::optional<int> read_crash_record(FileSystem& files, const std::string& path, int64_t run);

}  // namespace longhaul
