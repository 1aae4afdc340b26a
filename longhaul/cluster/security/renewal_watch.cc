#include "longhaul/cluster/security/renewal_watch.h"

#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {

std::string RenewalWatch::look() {
  if (!take_turn()) {
    MutexLock lock(mutex_);
    return problem_;
  }
  const std::string now = problem();
  std::string before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(problem_, now);
  }
  if (now == before) return now;
  if (now.empty()) {
    log_info("security: the files of {} can be used again", security_.certificate_file);
  } else {
    log_error("{}. New connections fail, or still use what was there before", now);
  }
  return now;
}

bool RenewalWatch::take_turn() {
  const Seconds now = clock_.now();
  MutexLock lock(mutex_);
  if (looked_ && now - looked_at_ < between_) return false;
  looked_ = true;
  looked_at_ = now;
  return true;
}

std::string RenewalWatch::problem() const {
  try {
    check_security(security_, clock_);
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace longhaul
