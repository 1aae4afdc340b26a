#include "longhaul/train/journal/journal_file.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/io/lock/directory_lock.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostBytes = 256 * 1024;  // then the file is replaced by one with the sums

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (const Error&) {
  }
}

}  // namespace

bool JournalFile::is_to_be_replaced() const {
  return !file_ || bytes_ > kMostBytes;
}

void JournalFile::replace(const std::string& sums) {
  write_or_log([&] { replace_file(sums); });
}

void JournalFile::append(const std::string& lines, bool to_disk) {
  write_or_log([&] {
    file_->append(lines);
    bytes_ += lines.size();
    to_disk ? file_->sync() : file_->flush();
  });
}

// A failure is logged if it is news. After an error the file is no longer used.
template <typename Write>
void JournalFile::write_or_log(const Write& write) {
  try {
    write();
    is_failing_ = false;
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    file_.reset();
    if (std::exchange(is_failing_, true)) return;
    log_warning("the journal {} cannot be written; training continues, and the write is retried: {}", path_,
                error.what());
  }
}

// 0. The directory is there, and this chief's.
// 1. The sums of all that happened go to a temporary file, and to the disk: a journal is never seen half.
// 2. The directory is still that.
// 3. The file takes its name. A crash of the machine may undo that: the journal before it is whole, too.
// 4. It stays open, and what happens from now on is appended.
void JournalFile::replace_file(const std::string& sums) {
  file_.reset();
  const std::string temporary = path_ + ".new";
  check_directory_owner(files_, path_);
  try {
    auto file = files_.create(temporary);
    file->append(sums);
    file->sync();
    check_directory_owner(files_, path_);
    files_.rename(temporary, path_);
    file_ = std::move(file);
    bytes_ = sums.size();
  } catch (...) {
    remove_quietly(files_, temporary);
    throw;
  }
}

void NoteTurns::begin() {
  pending_ = {.begins = true};
  ++noted_;
}

void NoteTurns::note(const std::string& line, bool to_disk) {
  pending_.lines += line;
  pending_.to_disk = pending_.to_disk || to_disk;
  ++noted_;
}

bool NoteTurns::take(Mutex& mutex, Seconds timeout) {
  const uint64_t mine = noted_;
  const Seconds give_up = clock_.now() + timeout;
  while (is_writing_ && written_ < mine && !is_hanging_) {
    const Seconds left = give_up - clock_.now();
    is_hanging_ = left <= Seconds{0};
    // wait: for the thread that writes, which may hang on its disk
    if (!is_hanging_) clock_.wait_for(written_one_, mutex, left);
  }
  if (is_writing_ || written_ >= mine) return false;
  is_writing_ = true;
  return true;
}

std::optional<NoteTurns::Work> NoteTurns::next() {
  written_ = taken_;
  is_hanging_ = false;
  is_writing_ = noted_ > written_;
  written_one_.notify_all();
  if (!is_writing_) return std::nullopt;
  taken_ = noted_;
  return std::exchange(pending_, {});
}

void NoteTurns::give_up() {
  written_ = taken_;
  is_writing_ = is_hanging_ = false;
  written_one_.notify_all();
}

}  // namespace longhaul
