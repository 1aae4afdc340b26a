#include "longhaul/train/status/run_status.h"

#include <unistd.h>

#include <array>
#include <utility>

#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {
namespace {

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

RunStatus::RunStatus(RunStatusOptions options)
    : options_(std::move(options)), began_(options_.clock->wall_time()), last_step_(options_.page.last_step) {}

void RunStatus::begins(std::shared_ptr<RunJournal> journal) {
  prepares("the session is being prepared");
  MutexLock lock(mutex_);
  journal_ = std::move(journal);
}

void RunStatus::prepares(const std::string& why) {
  MutexLock lock(mutex_);
  phase_ = StatusReport::Phase::kPreparing;
  why_ = why;
  steps_.begin_anew();
}

void RunStatus::trains() {
  MutexLock lock(mutex_);
  phase_ = StatusReport::Phase::kTraining;
  why_.clear();
}

void RunStatus::recovered(const std::string& prefix) {
  MutexLock lock(mutex_);
  restored_from_ = prefix;
  phase_ = StatusReport::Phase::kTraining;
  why_.clear();
}

void RunStatus::ends() {
  MutexLock lock(mutex_);
  phase_ = StatusReport::Phase::kEnding;
  why_ = "training ends, and its last checkpoint is saved";
  steps_.begin_anew();
}

void RunStatus::look(std::optional<int64_t> step) {
  if (!step) return;
  const Seconds now = options_.clock->now();
  const double wall_time = options_.clock->wall_time();
  MutexLock lock(mutex_);
  steps_.look(now, wall_time, *step);
}

void RunStatus::ends_at(int64_t last_step) {
  MutexLock lock(mutex_);
  if (options_.page.last_step == 0) last_step_ = last_step;
}

// The callback runs within a save, which must not wait for a reader of the page: it copies a list.
void RunStatus::follow_saves(Saver& saver) {
  const auto note = [seen = seen_, &saver](const std::string&) {
    std::vector<std::string> kept = saver.last_checkpoints();
    std::optional<SaveReport> last = saver.last_report();
    MutexLock lock(seen->mutex);
    seen->kept = std::move(kept);
    seen->last = std::move(last);
  };
  note("");
  std::shared_ptr<const void> saved = saver.on_saved(note);
  MutexLock lock(mutex_);
  saved_.swap(saved);
}

void RunStatus::follow_scalars(const std::string& directory) {
  auto watch = watch_scalars(directory, [curves = curves_](std::string_view tag, double value, int64_t step) {
    curves->note(tag, value, step);
  });
  MutexLock lock(mutex_);
  scalars_[directory] = std::move(watch);
}

void RunStatus::watch_hangs(HangTeller hung) {
  MutexLock lock(mutex_);
  hung_ = std::move(hung);
}

void RunStatus::stopped_by(const Coordinator& coord) {
  MutexLock lock(mutex_);
  stops_ = coord;
}

std::shared_ptr<const Coordinator> RunStatus::serve_saves(const Coordinator& coord) {
  auto served = std::make_shared<const Coordinator>(coord);
  MutexLock lock(mutex_);
  serves_saves_ = served;
  return served;
}

RunStatus::Asked RunStatus::request_stop() {
  std::optional<Coordinator> stops;
  {
    MutexLock lock(mutex_);
    stops = stops_;
  }
  if (!stops) return Asked::kNobody;
  stops->request_stop();
  return Asked::kDone;
}

RunStatus::Asked RunStatus::request_save() {
  std::shared_ptr<const Coordinator> serves;
  {
    MutexLock lock(mutex_);
    if (phase_ == StatusReport::Phase::kTraining) serves = serves_saves_.lock();
  }
  if (!serves) return Asked::kNobody;
  save_wanted_ = true;
  serves->notify();
  return Asked::kDone;
}

std::pair<StatusReport::Phase, std::string> RunStatus::phase() const {
  MutexLock lock(mutex_);
  return {phase_, why_};
}

std::optional<std::string> RunStatus::hung() const {
  HangTeller hung;
  {
    MutexLock lock(mutex_);
    if (phase_ == StatusReport::Phase::kTraining) hung = hung_;
  }
  return hung ? hung() : std::nullopt;
}

StatusReport RunStatus::report() const {
  StatusReport report;
  report.directory = options_.directory;
  report.host = own_host();
  report.hung = hung();
  report.began = began_;
  report.now = options_.clock->wall_time();
  report.scalars = curves_->newest();
  report.refused_scalars = curves_->refused_tags();
  if (options_.saves) report.saves.status = options_.saves->status();
  if (options_.mirror_saves) report.saves.mirror = options_.mirror_saves->status();
  std::shared_ptr<RunJournal> journal;
  {
    MutexLock lock(mutex_);
    journal = journal_;
    report.watches_hangs = hung_ != nullptr;
    report.phase = phase_;
    report.why = why_;
    report.steps.now = steps_.step();
    report.steps.made = steps_.steps_made();
    report.steps.per_second = steps_.steps_per_second();
    report.steps.last_time = steps_.last_growth();
    report.steps.last = last_step_;
    report.saves.restored_from = restored_from_;
  }
  {
    MutexLock lock(seen_->mutex);
    report.saves.kept = seen_->kept;
    report.saves.last = seen_->last;
  }
  if (journal) report.history = journal->history();
  if (report.steps.now && report.steps.last >= *report.steps.now && report.steps.per_second > 0) {
    report.steps.seconds_left = static_cast<double>(report.steps.last - *report.steps.now) / report.steps.per_second;
  }
  return report;
}

}  // namespace longhaul
