#include "longhaul/train/recovery/recovery_search.h"

#include <fmt/format.h>

#include <memory>
#include <set>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/base/thread.h"
#include "longhaul/checkpoint/directory/named_checkpoints.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"

namespace longhaul {
namespace {

// Where only what is listed counts, other damage is of no concern.
void keep_listed(RecoverySearch& found, const FallBackOptions& options) {
  if (options.recovery.search_directory) return;
  std::set<std::string> listed;
  for (const std::string& prefix : listed_prefixes(*options.files, options.directory)) listed.insert(base_name(prefix));
  const auto is_not_listed = [&](const std::string& prefix) { return !listed.contains(base_name(prefix)); };
  std::erase_if(found.incomplete, is_not_listed);
  std::erase_if(found.without_index, is_not_listed);
}

std::vector<std::string> own_candidates(const FallBackOptions& options) {
  return options.recovery.search_directory ? checkpoint_candidates(*options.files, options.directory, options.basename)
                                           : listed_candidates(*options.files, options.directory);
}

RecoverySearch search_directory(const FallBackOptions& options) {
  RecoverySearch found{.candidates = own_candidates(options),
                       .incomplete = incomplete_checkpoints(*options.files, options.directory, options.basename),
                       .without_index = checkpoints_without_index(*options.files, options.directory)};
  keep_listed(found, options);
  return found;
}

void append(std::vector<std::string>& all, const std::vector<std::string>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::vector<std::string> candidates_of_both(const FallBackOptions& options) {
  return options.recovery.search_directory
             ? mirrored_candidates(*options.files, options.directory, options.mirror.directory, options.basename)
             : listed_candidates(*options.files, options.directory, options.mirror.directory);
}

RecoverySearch search_both(const FallBackOptions& options) {
  RecoverySearch found{.candidates = candidates_of_both(options)};
  for (const std::string& place : {options.directory, options.mirror.directory}) {
    append(found.incomplete, incomplete_checkpoints(*options.files, place, options.basename));
    append(found.without_index, checkpoints_without_index(*options.files, place));
  }
  keep_listed(found, options);
  return found;
}

// What the thread finds, for whoever still waits for it.
struct Answer {
  Mutex mutex;
  CondVar changed;
  bool has_come GUARDED_BY(mutex) = false;
  RecoverySearch found GUARDED_BY(mutex);
  std::exception_ptr error GUARDED_BY(mutex);
};

void search_into(Answer& answer, const FallBackOptions& options) {
  RecoverySearch found;
  std::exception_ptr error;
  try {
    found = search_both(options);
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(answer.mutex);
  answer.found = std::move(found);
  answer.error = error;
  answer.has_come = true;
  answer.changed.notify_all();
}

bool comes_in_time(Answer& answer, Seconds timeout, const Deadline* deadline) {
  const Deadline::Wait wait(deadline, answer.mutex, answer.changed);
  const Seconds end = Clock::real().now() + timeout;
  const auto left = [&] { return wait.at_most(end - Clock::real().now()); };
  MutexLock lock(answer.mutex);
  while (!answer.has_come && left() > Seconds{0}) {
    answer.changed.wait_for(answer.mutex, left());  // wait: for the thread, which may hang on a mirror
  }
  return answer.has_come;
}

std::string no_answer(const FallBackOptions& options) {
  const std::optional<Seconds> left = options.deadline != nullptr ? options.deadline->left() : std::nullopt;
  if (left && *left <= Seconds{0}) return "no answer in the time that a preemption leaves";
  return fmt::format("no answer within {:g} s", options.mirror.start_timeout.count());
}

RecoverySearch search_in_time(const FallBackOptions& options) {
  const auto answer = std::make_shared<Answer>();
  const FallBackOptions kept{.files = options.files,
                             .directory = options.directory,
                             .mirror = options.mirror,
                             .basename = options.basename,
                             .recovery = options.recovery};
  NamedThread thread("lh-look", [answer, kept] { search_into(*answer, kept); });
  if (!comes_in_time(*answer, options.mirror.start_timeout, options.deadline)) {
    thread.detach();
    throw DeadlineExceededError(no_answer(options));
  }
  thread.join();
  MutexLock lock(answer->mutex);
  if (answer->error) std::rethrow_exception(answer->error);
  return answer->found;
}

}  // namespace

RecoverySearch search_for_recovery(const FallBackOptions& options) {
  if (options.mirror.directory.empty()) return search_directory(options);
  try {
    return search_in_time(options);
  } catch (const std::exception& error) {
    RecoverySearch found = search_directory(options);
    found.mirror_failure = error.what();
    log_error("the mirror {} is not searched: {}", options.mirror.directory, found.mirror_failure);
    return found;
  }
}

}  // namespace longhaul
