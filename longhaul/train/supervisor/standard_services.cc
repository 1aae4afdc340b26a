#include "longhaul/train/supervisor/standard_services.h"

#include "longhaul/train/signals/stop_budget.h"
#include "longhaul/train/supervisor/journal_service.h"
#include "longhaul/train/supervisor/status_services.h"

namespace longhaul {

std::vector<std::shared_ptr<LooperThread>> StandardServices::start(TrainingEvents& events) {
  if (context_->writer && context_->global_step.valid()) {
    events.write_start(read_global_step(*context_->session, context_->global_step));
    if (options_.digest_every_n_steps != 0) {
      digests_ = std::make_unique<WeightDigestService>(context_->session, context_->global_step, context_->writer,
                                                       options_.digest_every_n_steps,
                                                       StopBudget(options_.preemption).deadline());
    }
  }
  const std::vector<std::shared_ptr<LooperThread>> services = make();
  for (const auto& service : services) service->start();
  if (context_->journal) std::make_shared<JournalService>(context_)->start();
  return services;
}

std::vector<std::shared_ptr<LooperThread>> StandardServices::make() const {
  std::vector<std::shared_ptr<LooperThread>> services;
  if (context_->writer && context_->save_summaries_secs > Seconds{0}) {
    if (context_->summary_op.valid()) services.push_back(std::make_shared<SummaryService>(context_));
    if (context_->global_step.valid()) services.push_back(std::make_shared<StepCounterService>(context_));
  }
  if (context_->saver && context_->save_model_secs > Seconds{0}) {
    services.push_back(std::make_shared<TimerCheckpointService>(context_));
  }
  if (context_->saver && options_.preemption != nullptr) {
    services.push_back(std::make_shared<PreemptionService>(context_, *options_.preemption));
  }
  if (context_->saver && context_->status) services.push_back(std::make_shared<PageSaveService>(context_));
  if (context_->saver) {
    if (StopNoticing* const noticing = context_->session->capabilities().stop_noticing)
      services.push_back(std::make_shared<StopNoticeService>(context_, *noticing));
  }
  return services;
}

}  // namespace longhaul
