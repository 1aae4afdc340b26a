#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Writes down, beside the journal, that the process dies of a fatal signal of its own (docs/formats/run_journal.md): an
// access to memory that is not there, abort(), an exception that nobody catches. What kill(2) sends from outside is
// none, nor is memory that has failed.
//
// While one lives, SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT (kUsedSignals) are handled, unless they were ignored:
// the handler appends a line to a file that is open, and then does what would have been done without it, be that a
// handler of the program's or a sanitizer's, or the signal's default action, with its core dump. Where that handler
// returns, and the program goes on, it writes that down too; one that leaves by siglongjmp() is not seen to. A handler
// that the program installs later is on top of this one, and stays when the last record goes. In any thread; of a stack
// that has overflowed, in the thread that made the record (base/alternate_stack.h). In a forked child nothing is
// written.
//
// Several at a time, each for its run, up to 16. The destructor removes a file that has no signal in it, unless the
// name is another's by now.
class CrashRecord {
 public:
  // Replaces what there is at `path`. `run`: the journal's number of this run. ResourceExhaustedError: there are 16;
  // else what the system says of the file.
  CrashRecord(std::string path, int64_t run);
  ~CrashRecord();
  CrashRecord(const CrashRecord&) = delete;
  CrashRecord& operator=(const CrashRecord&) = delete;

 private:
  const std::string path_;
  const int fd_;
  const int64_t first_line_bytes_;
  const int64_t process_;          // a forked child has a copy
  std::atomic<int>* const place_;  // among those that the handler writes to
};

// The signal that this run died of; nullopt: of none that is known.
std::optional<int> read_crash_record(FileSystem& files, const std::string& path, int64_t run);

}  // namespace longhaul
