#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// The file of a RunJournal. It is replaced by a file with the sums of all earlier events; later events are appended.
// Errors of the file system are logged, once until it works again; only a DirectoryLostError is thrown. One thread at a
// time may call.
class JournalFile {
 public:
  JournalFile(std::string path, FileSystem& files) : path_(std::move(path)), files_(files) {}

  // Whether nothing can be appended: the file was not written yet, has failed, or is too long.
  bool is_to_be_replaced() const;
  void replace(const std::string& sums);
  void append(const std::string& lines, bool to_disk);

  std::unique_ptr<WritableFile> release() { return std::move(file_); }  // for closing it without a lock

 private:
  template <typename Write>
  void write_or_log(const Write& write);
  void replace_file(const std::string& sums);

  const std::string path_;
  FileSystem& files_;
  std::unique_ptr<WritableFile> file_;  // null: to be replaced
  uint64_t bytes_ = 0;
  bool is_failing_ = false;
};

// Decides which of several threads writes their notes. One thread at a time writes, for all that have added notes by
// then. The others wait for it, up to a timeout: if the file system hangs, their notes are written when it recovers.
// Call all functions under the owner's mutex, but write without holding it.
class NoteTurns {
 public:
  struct Work {
    std::string lines;
    bool begins = false;   // there are no lines: the whole file is to be rewritten
    bool to_disk = false;  // and synced
  };

  explicit NoteTurns(Clock& clock) : clock_(clock) {}

  void begin();  // drops pending notes, as the whole file is to be rewritten
  void note(const std::string& line, bool to_disk);

  // True: the caller must write until next() returns nothing more; false: its note is written, or will be.
  bool take(Mutex& mutex, Seconds timeout) REQUIRES(mutex);
  std::optional<Work> next();  // nullopt: none, and the turn is over
  void give_up();              // ends the turn after an error

  bool is_taken() const { return is_writing_; }
  bool is_hanging() const { return is_hanging_; }  // the writer takes longer than the others wait

 private:
  Clock& clock_;
  CondVar written_one_;
  Work pending_;                                  // not handed out yet
  uint64_t noted_ = 0, taken_ = 0, written_ = 0;  // numbers of notes
  bool is_writing_ = false, is_hanging_ = false;
};

}  // namespace longhaul
