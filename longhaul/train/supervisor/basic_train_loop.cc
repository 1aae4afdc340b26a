#include "longhaul/train/supervisor/basic_train_loop.h"

#include "longhaul/base/log.h"
#include "longhaul/train/coordination/lost_session.h"

namespace longhaul {
namespace {

class TrainLoop {
 public:
  TrainLoop(Supervisor& supervisor, const std::function<void(Session&)>& train_step, const TrainLoopOptions& options)
      : supervisor_(supervisor),
        coord_(supervisor.coord()),
        train_step_(train_step),
        options_(options),
        restarts_(options.restart, coord_) {}

  void run() {
    while (!train_in_one_session() && wait_before_restart()) {
    }
  }

 private:
  // Whether it is done; false: the session was lost and another one may do.
  bool train_in_one_session() {
    stop_was_wanted_ = is_training_ = false;
    try {
      supervisor_.managed_session([this](Session& session) { train(session); }, options_.session);
      return true;
    } catch (const Error& error) {
      const bool is_lost = is_training_ ? is_lost_session(error) : may_be_made_later(error);
      if (is_lost && stop_was_wanted_ && supervisor_.is_preempted()) {
        log_error("the session was lost while the preempted training ended; its next start continues: {}",
                  error.what());
        return true;
      }
      if (!is_lost || stop_was_wanted_ || !restarts_.session_lost(error.what(), coord_.reported_error())) throw;
      return false;
    }
  }

  void train(Session& session) {
    restarts_.session_begins();
    is_training_ = true;
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
      log_debug("training stops because of: {}", error.what());
    }
  }

  // False: a stop was requested meanwhile.
  bool wait_before_restart() {
    coord_.clear_stop();  // it was that of the lost session
    return restarts_.wait_for_next();
  }

  Supervisor& supervisor_;
  const Coordinator coord_;
  const std::function<void(Session&)>& train_step_;
  const TrainLoopOptions& options_;
  Restarts restarts_;
  bool stop_was_wanted_ = false;
  bool is_training_ = false;  // there was a session
};

}  // namespace

void basic_train_loop(Supervisor& supervisor, const std::function<void(Session&)>& train_step,
                      const TrainLoopOptions& options) {
  TrainLoop(supervisor, train_step, options).run();
}

}  // namespace longhaul
