#include "longhaul/train/divergence/way_back.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/events/summary.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/train/recovery/recovery_search.h"

namespace longhaul {
namespace {

constexpr const char* kLossesName = "divergence/losses";

std::string loss_text(double loss) {
  return std::isnan(loss) ? "NaN" : fmt::format("{:g}", loss);
}

}  // namespace

struct WayBack::Kept {
  explicit Kept(const LossWatchOptions& options) : watch(options) {}

  Mutex mutex;
  LossWatch watch GUARDED_BY(mutex);
  int64_t rollbacks GUARDED_BY(mutex) = 0;  // so many the model has behind it
};

WayBack::WayBack(DivergenceOptions options)
    : options_(std::move(options)), kept_(std::make_shared<Kept>(options_.watch)) {
  check_divergence(options_);
}

WayBack::~WayBack() = default;

void WayBack::keep_in(const Scope& scope) {
  if (!options_.keep_in_checkpoints) return;
  if (scope.graph().name_taken(kLossesName)) {
    throw AlreadyExistsError(
        "a loss of this graph is watched already, by a session before: a graph has one way back from bad losses. Make "
        "a new graph for each session, or give them the same DivergenceHook");
  }
  const Scope inner = scope.outermost().within("divergence");
  const auto read_losses = [kept = kept_] {
    MutexLock lock(kept->mutex);
    const std::vector<double> state = kept->watch.state();
    return Tensor::of(Shape{static_cast<int64_t>(state.size())}, state);
  };
  const auto set_losses = [kept = kept_](const Tensor& state) {
    const auto values = state.flat<double>();
    MutexLock lock(kept->mutex);
    kept->watch.set_state({values.begin(), values.end()});
  };
  ops::optional_program_value(inner, "losses",
                              {.dtype = kDouble,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{options_.watch.window},
                               .read = read_losses,
                               .assign = set_losses},
                              "divergence/losses");
  const auto read_rollbacks = [kept = kept_] {
    MutexLock lock(kept->mutex);
    return Tensor::scalar(kept->rollbacks);
  };
  const auto set_rollbacks = [kept = kept_](const Tensor& count) {
    MutexLock lock(kept->mutex);
    kept->rollbacks = count.num_elements() == 1 ? std::max<int64_t>(0, count.flat<int64_t>()[0]) : 0;
  };
  ops::optional_program_value(inner, "rollbacks",
                              {.dtype = kInt64,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{},
                               .read = read_rollbacks,
                               .assign = set_rollbacks},
                              "divergence/rollbacks");
  is_kept_ = true;
}

// A model that begins anew has none behind it, one that lives on servers all.
int64_t WayBack::known_rollbacks(const RunJournal* journal, const std::string& restored_from) const {
  if (journal != nullptr && journal->history().found_model()) return journal->history().rollbacks().count();
  if (journal == nullptr || restored_from.empty()) return 0;
  if (is_kept_) {
    MutexLock lock(kept_->mutex);
    return kept_->rollbacks;
  }
  const int64_t step = split_step(restored_from).step.value_or(0);
  int64_t known = 0;
  const Rollbacks rollbacks = journal->history().rollbacks();
  for (const Rollback& rollback : rollbacks.all()) {
    if (step > rollback.restored_step) known = rollback.count;
  }
  return known;
}

bool WayBack::has_to_catch_up(const RunJournal* journal, const std::string& restored_from) const {
  const int64_t count = journal != nullptr ? journal->history().rollbacks().count() : 0;
  return known_rollbacks(journal, restored_from) < count;
}

bool WayBack::session_begins(Place place, Session& session, const std::string& restored_from, int64_t step) {
  place_ = std::move(place);
  if (place_.journal == nullptr || place_.saver == nullptr) {
    throw FailedPreconditionError(fmt::format("a way back from bad losses (DivergenceOptions) needs {}: {}",
                                              place_.saver == nullptr ? "checkpoints" : "the journal of the directory",
                                              place_.saver == nullptr
                                                  ? "give the training a directory and a saver"
                                                  : "leave ChiefOptions::keep_journal and ChiefOptions::lock.lock on"));
  }
  if (place_.journal->history().found_model() && place_.journal->history().rollbacks().is_under_way()) {
    throw FailedPreconditionError(
        "the servers have the model whose loss went bad. A session manager of the program's own needs "
        "SessionManagerOptions::drops_model to go back from there; or end or reset the servers");
  }
  bad_ = nullptr;
  place_.saver->keep_behind(options_.margin_steps + options_.watch.in_a_row);
  skipped_ = place_.journal->history().rollbacks();
  const int64_t known = known_rollbacks(place_.journal.get(), restored_from);
  {
    MutexLock lock(kept_->mutex);
    if (!is_kept_ || restored_from.empty()) kept_->watch.set_state({});
    kept_->rollbacks = std::max(known, skipped_.count());  // of a journal that was lost, the checkpoint knows more
  }
  bool was_called = false;
  for (const Rollback& rollback : skipped_.all()) {
    if (rollback.count <= known) continue;
    log_info("rollback {}: the loss went bad at step {}, and the training continues from {} at step {}{}",
             rollback.count, rollback.diverged_step, restored_from.empty() ? "the beginning" : restored_from, step,
             rollback.skips
                 ? fmt::format("; steps {} to {} are left out", rollback.restored_step, rollback.until_step - 1)
                 : "");
    if (place_.events != nullptr) place_.events->add_scalar(kRollbacksTag, static_cast<float>(rollback.count), step);
    if (!options_.on_rollback) continue;
    options_.on_rollback(session, rollback);
    was_called = true;
  }
  return was_called;
}

void WayBack::look(int64_t step, double loss) {
  if (bad_) std::rethrow_exception(bad_);
  LossWatch::Verdict verdict;
  int64_t first = 0;
  double median = 0;
  {
    MutexLock lock(kept_->mutex);
    verdict = kept_->watch.look(step, loss);
    first = kept_->watch.first_bad_step();
    if (verdict == LossWatch::Verdict::kHigh && first == step) median = kept_->watch.median();
  }
  if (verdict == LossWatch::Verdict::kBad) {
    try {
      diverged(step, loss);
    } catch (...) {
      bad_ = std::current_exception();
      throw;
    }
  }
  if (verdict == LossWatch::Verdict::kHigh && first == step) {
    log_warning("the loss of step {} is {}, far above the median {} of those before", step, loss_text(loss),
                loss_text(median));
  }
}

// The newest that a restart would restore; nullopt: there is none.
std::optional<std::string> WayBack::last_good(int64_t latest) const {
  std::optional<std::string> best;
  int64_t best_step = -1;
  for (const std::string& prefix : search_for_recovery(place_.search).candidates) {
    const std::optional<int64_t> step = split_step(prefix).step;
    if (!step || *step > latest || *step <= best_step || place_.journal->is_skipped(prefix)) continue;
    best = prefix;
    best_step = *step;
  }
  return best;
}

int64_t WayBack::recent_rollbacks(int64_t step) const {
  const std::vector<Rollback> all = place_.journal->history().rollbacks().all();
  return std::count_if(all.begin(), all.end(), [&](const Rollback& rollback) {
    return options_.within_steps == 0 || rollback.diverged_step > step - options_.within_steps;
  });
}

// Of a training that ends without a good checkpoint: what the next start does.
std::string WayBack::what_follows(int64_t good_until) const {
  std::optional<int64_t> oldest_step;
  std::string oldest;
  for (const std::string& prefix : search_for_recovery(place_.search).candidates) {
    const std::optional<int64_t> step = split_step(prefix).step;
    if (!step || (oldest_step && *oldest_step <= *step)) continue;
    oldest_step = step;
    oldest = prefix;
  }
  if (!oldest_step) return "There is no checkpoint, so the next start begins anew";
  return fmt::format("The next start restores the oldest checkpoint that it finds, now {}{}", oldest,
                     *oldest_step > good_until ? ", whose weights may be bad already" : "");
}

// Told where a person looks first: the events of a training that has ended have no log.
void WayBack::end_training(const Rollback& rollback, const std::string& why) {
  place_.journal->diverged(rollback, /*ends=*/true);
  if (place_.events != nullptr) place_.events->add_summary(text_summary(kDivergedTag, why), rollback.until_step);
  throw DivergedError(why);
}

void WayBack::diverged(int64_t step, double loss) {
  int64_t first, count;
  {
    MutexLock lock(kept_->mutex);
    first = kept_->watch.first_bad_step();
    count = std::max(kept_->rollbacks, place_.journal->history().rollbacks().count()) + 1;
  }
  const std::string what = fmt::format("the loss of step {} is {}{}", step, loss_text(loss),
                                       first < step ? fmt::format(", and it was too high since step {}", first) : "");
  const int64_t good_until = std::max<int64_t>(0, first - options_.margin_steps);
  const std::optional<std::string> good = last_good(first - options_.margin_steps);
  Rollback rollback{.count = count,
                    .diverged_step = first,
                    .until_step = step + 1,
                    .restored_step = good ? split_step(*good).step.value_or(0) : good_until,
                    .loss = loss,
                    .skips = options_.skip_batches,
                    .checkpoint = good ? base_name(*good) : ""};
  if (!good) {
    end_training(rollback, fmt::format("{}. Training ends, because there is no checkpoint that was taken {} steps "
                                       "before (margin_steps) to go back to. {}. Lower the learning rate, or save more "
                                       "often; to begin anew, use another directory",
                                       what, options_.margin_steps, what_follows(good_until)));
  }
  const int64_t recent = recent_rollbacks(first);
  if (recent >= options_.max_rollbacks) {
    const std::string where = options_.within_steps > 0 ? fmt::format(" within {} steps", options_.within_steps) : "";
    end_training(
        rollback,
        fmt::format("{}. Training ends after {} rollbacks{} (max_rollbacks). The last good checkpoint is {}: a "
                    "restart continues from there. Lower the learning rate, or look at the examples of these "
                    "steps",
                    what, recent, where, *good));
  }
  place_.journal->diverged(rollback);
  log_error("{}. The model goes back to {}", what, *good);
  throw RollBackError(fmt::format("{}: the model goes back to {}", what, *good), std::move(rollback));
}

}  // namespace longhaul
