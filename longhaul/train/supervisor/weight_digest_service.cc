#include "longhaul/train/supervisor/weight_digest_service.h"

namespace longhaul {
namespace {

StepWatching& watching(Session& session) {
  return required_capability(
      session.capabilities().step_watching,
      "digest_every_n_steps: this kind of session does not support watching its steps (it has no StepWatching): leave "
      "the option at 0, or use a WeightDigestHook in a MonitoredSession");
}

}  // namespace

WeightDigestService::WeightDigestService(std::shared_ptr<Session> session, const Output& global_step,
                                         std::shared_ptr<FileWriter> writer, int64_t every, const Deadline* deadline)
    : session_(std::move(session)),
      steps_(watching(*session_)),
      digests_(std::make_shared<WeightDigests>(session_->graph(), global_step, std::move(writer), kDigestTimeout,
                                               deadline)) {
  digests_->take_if_due(*session_, every);
  watch_ = steps_.watch_steps({.step = global_step,
                               .every = every,
                               .passed = [digests = digests_, session = session_.get()] { digests->take(*session); }});
}

WeightDigestService::~WeightDigestService() {
  watch_.reset();
  digests_->finish();
}

}  // namespace longhaul
