#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/file.h"

namespace longhaul {

// The file of a RunJournal. It is replaced by one with the sums of all that happened, and what happens from then on is
// appended. What the file system throws is logged, once until it works again; a DirectoryLostError alone is thrown. One
// thread at a time.
class JournalFile {
 public:
  JournalFile(std::string path, FileSystem& files) : path_(std::move(path)), files_(files) {}

  // Nothing can be appended: it was not written yet, or failed, or is too long by now.
  bool is_to_be_replaced() const;
  void replace(const std::string& sums);
  void append(const std::string& lines, bool to_disk);

  std::unique_ptr<WritableFile> release() { return std::move(file_); }  // for who closes it without a lock

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

// Who of several threads writes what they note: one at a time, for all that have noted something meanwhile. They wait
// for it, but not for longer than a timeout: on a file system that hangs, what they noted is written when it goes on.
// All under the mutex of whom it is for, which the writing itself is not.
class NoteTurns {
 public:
  struct Work {
    std::string lines;
    bool begins = false;   // there are no lines: everything is to be written anew
    bool to_disk = false;  // and synced
  };

  explicit NoteTurns(Clock& clock) : clock_(clock) {}

  void begin();  // what is in nobody's work yet is forgotten, as everything is to be written anew
  void note(const std::string& line, bool to_disk);

  // True: the caller is to write, until next() has nothing more; false: what it noted is written, or will be.
  bool take(Mutex& mutex, Seconds timeout) REQUIRES(mutex);
  std::optional<Work> next();  // nullopt: there is none, and the turn is over
  void give_up();              // the turn is over, by an error

  bool is_taken() const { return is_writing_; }
  bool is_hanging() const { return is_hanging_; }  // somebody writes for longer than anybody waits

 private:
  Clock& clock_;
  CondVar written_one_;
  Work pending_;                                  // in nobody's work yet
  uint64_t noted_ = 0, taken_ = 0, written_ = 0;  // how many
  bool is_writing_ = false, is_hanging_ = false;
};

}  // namespace longhaul
