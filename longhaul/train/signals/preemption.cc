#include "longhaul/train/signals/preemption.h"

#include <algorithm>
#include <exception>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

bool contains(const std::vector<int>& signals, int signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

auto living(const std::vector<std::weak_ptr<const Coordinator>>& coordinators) {
  return std::count_if(coordinators.begin(), coordinators.end(), [](const auto& each) { return !each.expired(); });
}

// The one that the process has; null: none.
struct Current {
  Mutex mutex;
  Preemption* preemption GUARDED_BY(mutex) = nullptr;
};

Current& current() {
  static Current& the_one = *new Current;
  return the_one;
}

}  // namespace

Preemption::Preemption(PreemptionOptions options)
    : options_(std::move(options)), grace_(options_.grace), signals_(handling()) {
  MutexLock lock(current().mutex);
  current().preemption = this;
}

Preemption::~Preemption() {
  {
    MutexLock lock(current().mutex);
    if (current().preemption == this) current().preemption = nullptr;
  }
  if (!is_preempted() || options_.exit_status == 0 || status_was_asked_) return;
  if (std::uncaught_exceptions() > 0) {
    log_warning(
        "the program was preempted, and an exception ends it before the Preemption was asked for its exit status: a "
        "scheduler restarts the program only if it ends with the status {}. Catch the exception while the Preemption "
        "exists, and return preemption.exit_status(1)",
        options_.exit_status);
    return;
  }
  log_warning(
      "the program was preempted, but nobody has asked the Preemption for its exit status: a scheduler restarts the "
      "program only if it ends with the status {}. Return preemption.exit_status() from main()",
      options_.exit_status);
}

int Preemption::exit_status(int otherwise) const {
  status_was_asked_ = true;
  return is_preempted() ? options_.exit_status : otherwise;
}

void Preemption::warn_of_unused() {
  MutexLock lock(current().mutex);
  if (current().preemption == nullptr || current().preemption->has_attached()) return;
  log_warning(
      "the program has a Preemption, but this training does not use it: signals that it takes will not stop the "
      "training, which is then killed. Set .chief = {{.preemption = &preemption}}");
}

SignalHandling Preemption::handling() {
  SignalHandling handling{.stop_signals = options_.stop_signals,
                          .other_signals = options_.save_signals,
                          .on_signal = [this](int signal) { handle(signal); },
                          .user = "Preemption"};
  handling.stop_signals.insert(handling.stop_signals.end(), options_.interrupt_signals.begin(),
                               options_.interrupt_signals.end());
  return handling;
}

// The log comes last, here and below: a sink, or a full pipe behind stderr, may block.
void Preemption::handle(int signal) {
  if (contains(options_.save_signals, signal)) {
    request_save();
    return log_info("{}: a checkpoint is saved after the current step, and training continues", signal_name(signal));
  }
  if (contains(options_.interrupt_signals, signal)) {
    const bool saves = !saves_nothing();
    stop();
    return log_info("{}", signal_notice(signal, saves ? "training stops after the current step and a last checkpoint"
                                                      : "training stops after the current step"));
  }
  end_in(grace_.after(signal, options_.clock->wall_time()), signal);
}

void Preemption::preempt(std::optional<Seconds> grace) {
  const PreemptionGrace period = grace ? PreemptionGrace(grace) : grace_;
  end_in(period.after(0, options_.clock->wall_time()), 0);
}

void Preemption::end_in(const PreemptionGrace::Period& period, int signal) {
  deadline_.bring_forward(period.length);
  const bool is_used = has_attached(), saves = !saves_nothing();  // a training run may end soon after the stop
  stop();
  const std::string consequence =
      is_used ? fmt::format("training stops after the current step, with {:g} s for the step{} ({})",
                            period.length.count(), saves ? " and a last checkpoint" : "", period.source)
              : fmt::format(
                    "no training run uses this Preemption yet (ChiefOptions::preemption), so none stops; "
                    "{:g} s are left ({})",
                    period.length.count(), period.source);
  log_warning("{}", signal == 0 ? "preempted: " + consequence : signal_notice(signal, consequence));
  if (!saves) {
    log_warning("training saves no checkpoints (set logdir or checkpoint_dir): a restart starts from scratch");
  }
}

void Preemption::request_save() {
  save_wanted_ = true;
  Coordinators all;
  {
    MutexLock lock(mutex_);
    all = waiting_for_saves_;
  }
  for (const auto& weak : all) {
    if (const auto coord = weak.lock()) coord->notify();
  }
}

bool Preemption::has_attached() {
  MutexLock lock(mutex_);
  return living(coordinators_) > 0;
}

// There is a training run, and none takes checkpoints.
bool Preemption::saves_nothing() {
  MutexLock lock(mutex_);
  const auto all = living(coordinators_);
  return all > 0 && all == living(without_checkpoints_);
}

void Preemption::stop() {
  {
    MutexLock lock(mutex_);
    is_stopping_ = true;
  }
  stop_all();
}

void Preemption::stop_all() {
  Coordinators all;
  {
    MutexLock lock(mutex_);
    if (!is_stopping_) return;
    all = coordinators_;
  }
  for (const auto& weak : all) {
    if (const auto coord = weak.lock()) coord->request_stop_while(coord);
  }
}

std::shared_ptr<const Coordinator> Preemption::add(const Coordinator& coord, Coordinators& all) {
  const auto kept = std::make_shared<const Coordinator>(coord);
  std::erase_if(all, [](const auto& other) { return other.expired(); });
  all.push_back(kept);
  return kept;
}

std::shared_ptr<const Coordinator> Preemption::notify_of_saves(const Coordinator& coord) {
  MutexLock lock(mutex_);
  return add(coord, waiting_for_saves_);
}

std::shared_ptr<const Coordinator> Preemption::attach(const Coordinator& coord, bool takes_checkpoints) {
  std::shared_ptr<const Coordinator> kept;
  {
    MutexLock lock(mutex_);
    kept = add(coord, coordinators_);
    if (!takes_checkpoints) {
      std::erase_if(without_checkpoints_, [](const auto& other) { return other.expired(); });
      without_checkpoints_.push_back(kept);
    }
  }
  stop_all();
  return kept;
}

}  // namespace longhaul
