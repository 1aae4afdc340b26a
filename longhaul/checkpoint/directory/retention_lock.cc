#include "longhaul/checkpoint/directory/retention_lock.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/checkpoint/directory/retention_file.h"

namespace longhaul {
namespace {

constexpr Seconds kBetweenTries{0.02};  // it is held for as long as a small file takes to be written

// Nothing notifies of a lock that another process releases.
void wait_a_moment(Clock& clock, Seconds time) {
  Mutex mutex;
  CondVar nobody;
  MutexLock lock(mutex);
  clock.wait_for(nobody, mutex, time);  // wait: polls: a lock of another process
}

}  // namespace

RetentionLock::RetentionLock(FileSystem& files, Clock& clock, const std::string& directory, Seconds longest,
                             const std::string& latest_filename)
    : path_(retention_path(directory, latest_filename) + ".lock") {
  const Seconds end = clock.now() + longest;
  try_once(files);
  for (Seconds left = longest; state_ == State::kTaken && left > Seconds{0}; left = end - clock.now()) {
    wait_a_moment(clock, std::min(left, kBetweenTries));
    try_once(files);
  }
  if (state_ == State::kTaken) why_ = fmt::format("somebody else has held {} for {:.0f} s", path_, longest.count());
}

void RetentionLock::try_once(FileSystem& files) {
  try {
    FileLock::Attempt attempt = files.try_lock(path_);
    lock_ = std::move(attempt.lock);
    switch (attempt.outcome) {
      case FileLock::Outcome::kHeld: state_ = State::kHeld; break;
      case FileLock::Outcome::kTaken: state_ = State::kTaken; break;
      case FileLock::Outcome::kUnsupported: state_ = State::kUnsupported; break;
    }
  } catch (const Error& error) {
    state_ = State::kFailed;
    why_ = error.what();
  }
}

}  // namespace longhaul
