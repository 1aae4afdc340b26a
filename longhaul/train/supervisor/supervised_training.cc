#include "longhaul/train/supervisor/supervised_training.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {
namespace {

// A step that cannot be read is not known: whoever makes steps will be told why.
std::optional<int64_t> step_now(Session& session, const Output& global_step, const RunJournal* journal) {
  try {
    if (global_step.valid()) return read_global_step(session, global_step);
  } catch (const std::exception& error) {
    log_debug("the step is unknown: {}", error.what());
  }
  return journal != nullptr ? journal->history().sums().step : std::nullopt;
}

}  // namespace

void SupervisedTraining::begin(std::shared_ptr<Session> session, const RunJournal* journal) {
  session_ = std::move(session);
  start_step_ = step_now(*session_, defaults_.global_step, journal);
}

std::vector<std::shared_ptr<LooperThread>> SupervisedTraining::start_services(ServiceContext context,
                                                                              const StandardServicesOptions& options,
                                                                              TrainingEvents& events) {
  services_ = std::make_unique<StandardServices>(std::make_shared<const ServiceContext>(std::move(context)), options);
  return services_->start(events);
}

// A session that has made no step itself may be one of a training whose steps others make: then none is missed.
void SupervisedTraining::watch_for_hangs(const std::shared_ptr<Session>& session, const HangOptions& options,
                                         Clock& clock, HangRecords records) {
  const StepWatching* const steps = session->capabilities().step_watching;
  if (hang_watch_ || steps == nullptr || options.after <= Seconds{0}) return;
  const auto made = [session, steps, looks = uint64_t{0}]() mutable {
    const uint64_t ended = steps->steps_ended();
    const bool makes_steps = ended > 0 || steps->is_step_under_way() || steps->sees_all_steps();
    return makes_steps ? looks + ended : ++looks;
  };
  hang_watch_ =
      std::make_unique<HangWatch>(options, clock, WatchedTraining{.steps = made, .records = std::move(records)});
}

std::optional<UnsavedSteps> SupervisedTraining::count_unsaved_steps(const RunJournal* journal, bool after_error) const {
  if (!session_) return std::nullopt;
  const std::optional<int64_t> now = step_now(*session_, defaults_.global_step, journal);
  const auto unsaved = unsaved_steps(*defaults_.saver, save_path_, start_step_, now);
  if (unsaved && after_error) log_warning("{}", describe_lost(*unsaved, *defaults_.saver));
  return unsaved;
}

std::optional<UnsavedSteps> SupervisedTraining::warn_of_unsaved_steps(const std::string& who,
                                                                      const RunJournal* journal) const {
  const std::optional<UnsavedSteps> unsaved = count_unsaved_steps(journal);
  if (!unsaved) return std::nullopt;
  log_warning(
      "{} saves no checkpoint: {} not saved. Call saver()->save() before stop(), or stop({{.save_checkpoint = true}}), "
      "or use managed_session()",
      who, describe(*unsaved));
  return unsaved;
}

}  // namespace longhaul
