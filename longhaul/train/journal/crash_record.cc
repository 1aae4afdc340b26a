#include "longhaul/train/journal/crash_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <sstream>
#include <utility>

#include "longhaul/base/above_stdio.h"
#include "longhaul/io/files/posix_call.h"
#include "longhaul/train/signals/crash_handler.h"

namespace longhaul {
namespace {

constexpr uint64_t kMostCrashBytes = 64 * 1024;

std::string first_line(int64_t run) {
  return fmt::format("longhaul crash record 1 run {}\n", run);
}

void write_or_throw(int fd, const std::string& text, const std::string& path) {
  const ssize_t count = retried([&] { return ::write(fd, text.data(), text.size()); });
  if (count != static_cast<ssize_t>(text.size())) throw_errno(count < 0 ? errno : ENOSPC, "write " + path);
}

// A file of its own each time: another chief's process may still have the one of before open.
int make_file(const std::string& path, int64_t run) {
  const std::string temporary = path + ".new";
  ::unlink(temporary.c_str());
  const AboveStdio above;
  const int fd =
      retried([&] { return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666); });
  if (fd < 0) throw_errno(errno, "create " + temporary);
  try {
    write_or_throw(fd, first_line(run), temporary);
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_errno(errno, "rename " + temporary + " to " + path);
  } catch (...) {
    ::close(fd);
    ::unlink(temporary.c_str());
    throw;
  }
  return fd;
}

bool has_lines(int fd, int64_t begin) {
  struct stat info{};
  return ::fstat(fd, &info) == 0 && info.st_size > begin;
}

bool is_named(int fd, const std::string& path) {
  struct stat held{}, named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

// The last line counts: a program may outlive a signal.
std::optional<int> signal_of(std::istringstream& lines) {
  std::optional<int> signal;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    int number = 0;
    words >> word >> number;
    signal = word == "signal" && number > 0 && number < NSIG ? std::optional(number) : std::nullopt;
  }
  return signal;
}

}  // namespace

CrashRecord::CrashRecord(std::string path, int64_t run)
    : path_(std::move(path)),
      fd_(make_file(path_, run)),
      first_line_bytes_(static_cast<int64_t>(first_line(run).size())),
      process_(::getpid()),
      place_(add_crash_descriptor(fd_)) {
  if (place_ != nullptr) return;
  ::close(fd_);
  throw ResourceExhaustedError("this process has too many training runs to keep a crash record for each: " + path_);
}

CrashRecord::~CrashRecord() {
  remove_crash_descriptor(place_, fd_);
  const bool is_to_stay = process_ != ::getpid() || has_lines(fd_, first_line_bytes_);
  if (!is_to_stay && is_named(fd_, path_)) ::unlink(path_.c_str());
  ::close(fd_);
}

std::optional<int> read_crash_record(FileSystem& files, const std::string& path, int64_t run) {
  std::string text;
  try {
    text = read_file(files, path, kMostCrashBytes);
  } catch (const Error&) {
    return std::nullopt;
  }
  const std::string first = first_line(run);
  if (!text.starts_with(first)) return std::nullopt;
  std::istringstream lines(text.substr(first.size()));
  return signal_of(lines);
}

}  // namespace longhaul
