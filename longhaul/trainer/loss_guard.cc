#include "longhaul/trainer/loss_guard.h"

#include <memory>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr int64_t kUnwatchedSteps = 100;  // in a row, after which the log tells of it

std::shared_ptr<Session> borrowed(Session& session) {
  return {std::shared_ptr<void>(), &session};
}

}  // namespace

LossGuard::LossGuard(const std::optional<DivergenceOptions>& options, const Scope& scope, TorchLoop& loop)
    : loop_(loop) {
  if (!options) return;
  way_back_.emplace(*options);
  way_back_->keep_in(scope);
}

void LossGuard::searches_as(const SupervisorOptions& options) {
  search_ = {.files = options.files,
             .mirror = searched_mirror(options.chief),
             .basename = options.checkpoint_basename,
             .recovery = options.chief.recovery};
}

bool LossGuard::begin_run(Supervisor& supervisor, Session& session) {
  bad_ = nullptr;
  steps_without_loss_ = 0;
  if (!way_back_) return false;
  const std::shared_ptr<RunJournal> journal = supervisor.service_context(borrowed(session)).journal;
  if (!way_back_->has_to_catch_up(journal.get(), supervisor.restored_from())) return catch_up(supervisor, session);
  loop_.begin();
  try {
    const bool was_called = catch_up(supervisor, session);
    loop_.cancel();
    return was_called;
  } catch (...) {
    loop_.abandon("DivergenceOptions::on_rollback has failed");
    throw;
  }
}

bool LossGuard::catch_up(Supervisor& supervisor, Session& session) {
  search_.directory = supervisor.save_path().substr(0, supervisor.save_path().rfind('/'));  // absolute
  return way_back_->session_begins({.journal = supervisor.service_context(borrowed(session)).journal,
                                    .saver = supervisor.saver(),
                                    .search = search_,
                                    .events = supervisor.summary_writer()},
                                   session, supervisor.restored_from(), loop_.step());
}

bool LossGuard::is_bad(std::optional<double> loss) {
  if (!way_back_) return false;
  if (!loss) {
    if (++steps_without_loss_ == kUnwatchedSteps) {
      log_warning(
          "TrainerOptions::divergence watches the loss, but {} steps in a row have logged none: call "
          "trainer.log(\"loss\", loss) in each step",
          kUnwatchedSteps);
    }
    return false;
  }
  steps_without_loss_ = 0;
  try {
    way_back_->look(loop_.step(), *loss);
  } catch (...) {
    bad_ = std::current_exception();
  }
  return bad_ != nullptr;
}

void LossGuard::raise() const {
  if (bad_) std::rethrow_exception(bad_);
}

}  // namespace longhaul
