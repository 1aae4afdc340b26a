#include "longhaul/train/coordination/restarts.h"

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/train/coordination/checked_options.h"

namespace longhaul {
namespace {

// On one line: "From /job:ps/replica:0/task:1: Session handle is not found: 99137dfeb89c4cae. ...".
std::string first_words(std::string text) {
  constexpr size_t kMost = 120;  // bytes
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kMost) return text;
  const size_t end = text.rfind(' ', kMost);
  return end == text.npos ? text : text.substr(0, end) + " ...";
}

bool says_the_same(const std::string& why, const std::exception_ptr& reported) {
  if (reported == nullptr) return false;
  const std::string logged = message_of(reported);
  return !logged.empty() && why.find(logged) != why.npos;
}

}  // namespace

void check_restart(const RestartOptions& options) {
  if (options.max_restarts) check_not_negative("restart.max_restarts", *options.max_restarts);
  check_not_negative("restart.backoff", options.backoff);
  check_not_negative("restart.max_backoff", options.max_backoff);
  check_not_negative("restart.healthy_after", options.healthy_after);
}

Restarts::Restarts(const RestartOptions& options, Coordinator coord) : options_(options), coord_(std::move(coord)) {
  check_restart(options_);
}

bool Restarts::session_lost(const std::string& why, const std::exception_ptr& reported) {
  if (begin_ && coord_.clock().now() - *begin_ >= options_.healthy_after) in_a_row_ = 0;
  begin_.reset();
  if (options_.max_restarts && in_a_row_ >= *options_.max_restarts) {
    log_error("the session was lost again after {} restarts in a row, the limit (max_restarts)", in_a_row_);
    return false;
  }
  log_warning("the session was lost: {}", says_the_same(why, reported) ? first_words(why) : why);
  return true;
}

bool Restarts::wait_for_next() {
  const Seconds wait = next_backoff();
  log_info("restart {} begins in {:g} s", ++in_a_row_, wait.count());
  return !coord_.wait_for_stop(wait);  // wait: the pause before a restart
}

Seconds Restarts::next_backoff() const {
  Seconds wait = options_.backoff;
  for (int i = 0; i < in_a_row_ && wait < options_.max_backoff; ++i) wait *= 2;
  return std::min(wait, options_.max_backoff);
}

}  // namespace longhaul
