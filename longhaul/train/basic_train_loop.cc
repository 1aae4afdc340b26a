#include "longhaul/train/basic_train_loop.h"

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/train/lost_session.h"

namespace longhaul {
namespace {

class TrainLoop {
 public:
  TrainLoop(Supervisor& supervisor, const std::function<void(Session&)>& train_step, const TrainLoopOptions& options)
      : supervisor_(supervisor), coord_(supervisor.coord()), train_step_(train_step), options_(options) {}

  void run() {
    while (!train_in_one_session() && wait_before_restart()) {
    }
  }

 private:
  // Whether it is done; false: the session was lost and another one may do.
  bool train_in_one_session() {
    const Seconds start = coord_.clock().now();
    stop_was_wanted_ = false;
    try {
      supervisor_.managed_session([this](Session& session) { train(session); }, options_.session);
      return true;
    } catch (const Error& error) {
      if (!is_lost_session(error) || stop_was_wanted_) throw;
      if (coord_.clock().now() - start >= options_.healthy_after) restarts_ = 0;
      if (options_.max_restarts && restarts_ >= *options_.max_restarts) {
        log_error("the session was lost again after {} restarts in a row, which is the limit", restarts_);
        throw;
      }
      log_warning("the session was lost: {}", error.what());
      return false;
    }
  }

  void train(Session& session) {
    try {
      while (!supervisor_.should_stop()) train_step_(session);
    } catch (...) {
      note_stop();
      throw;
    }
    note_stop();
  }

  // A stop without an error is one that somebody asked for, whatever fails on the way out.
  void note_stop() {
    if (!supervisor_.should_stop()) return;
    try {
      coord_.raise_requested_exception();
      stop_was_wanted_ = true;
    } catch (const std::exception& error) {
      log_debug("the training stops because of: {}", error.what());
    }
  }

  // False: a stop was requested meanwhile.
  bool wait_before_restart() {
    const Seconds wait = next_backoff();
    ++restarts_;
    coord_.clear_stop();  // it was that of the lost session
    log_info("restart {} comes in {:g} s", restarts_, wait.count());
    return !coord_.wait_for_stop(wait);
  }

  Seconds next_backoff() const {
    Seconds wait = options_.backoff;
    for (int i = 0; i < restarts_ && wait < options_.max_backoff; ++i) wait *= 2;
    return std::min(wait, options_.max_backoff);
  }

  Supervisor& supervisor_;
  const Coordinator coord_;
  const std::function<void(Session&)>& train_step_;
  const TrainLoopOptions& options_;
  int restarts_ = 0;
  bool stop_was_wanted_ = false;
};

}  // namespace

void basic_train_loop(Supervisor& supervisor, const std::function<void(Session&)>& train_step,
                      const TrainLoopOptions& options) {
  TrainLoop(supervisor, train_step, options).run();
}

}  // namespace longhaul
