#include "longhaul/train/onlookers/newest_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {
namespace {

constexpr Seconds kEndTimeout{10};

// With bytes of its own.
Tensor copy_of(const Tensor& value) {
  Tensor copy(value.dtype(), value.shape());
  if (value.dtype() == kString) {
    std::ranges::copy(value.flat<std::string>(), copy.mutable_flat<std::string>().begin());
  } else if (value.size_bytes() > 0) {
    std::memcpy(copy.mutable_data(), value.data(), value.size_bytes());
  }
  return copy;
}

std::vector<Variable> published(const Graph& graph, const std::vector<Variable>& chosen) {
  if (!chosen.empty()) return chosen;
  std::vector<Variable> variables;
  for (const VariableInfo& info : ops::trainable_variables(graph)) variables.emplace_back(info);
  if (!variables.empty()) return variables;
  throw InvalidArgumentError(
      "WeightsPublisher: the graph has no trainable variables, so there is nothing to publish: name some in "
      "WeightsPublisherOptions::variables");
}

Output step_of(const Graph& graph, const Output& chosen) {
  if (chosen.valid()) return chosen;
  if (const std::optional<Variable> step = ops::get_global_step(graph)) return *step;
  throw InvalidArgumentError(
      "WeightsPublisher: the graph has no global step: pass WeightsPublisherOptions::global_step");
}

}  // namespace

const Tensor& Weights::at(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, [](const auto& named) { return named.first; });
  if (found == tensors.end()) throw NotFoundError(fmt::format("the published weights have no variable {}", name));
  return found->second;
}

std::vector<std::pair<std::string, Tensor>> Weights::part(const std::string& prefix) const {
  std::vector<std::pair<std::string, Tensor>> found;
  for (const auto& [name, value] : tensors) {
    if (name.starts_with(prefix)) found.emplace_back(name.substr(prefix.size()), value);
  }
  if (found.empty()) throw NotFoundError(fmt::format("no variable of the published weights begins with {}", prefix));
  return found;
}

std::shared_ptr<const Weights> NewestWeights::get() const {
  const MutexLock lock(mutex_);
  return newest_;
}

std::shared_ptr<const Weights> NewestWeights::wait_for_newer(const std::shared_ptr<const Weights>& than,
                                                             Seconds timeout) const {
  const int64_t version = than ? than->version : 0;
  const Seconds deadline = Clock::real().now() + timeout;
  const MutexLock lock(mutex_);
  while (true) {
    if (newest_ && newest_->version > version) return newest_;
    const Seconds left = deadline - Clock::real().now();
    if (is_closed_ || !(left > Seconds{0})) return nullptr;
    changed_.wait_for(mutex_, left);  // wait: the caller's limit
  }
}

std::shared_ptr<const Weights> NewestWeights::publish(Weights weights) {
  const auto published = std::make_shared<Weights>(std::move(weights));
  const MutexLock lock(mutex_);
  published->version = newest_ ? newest_->version + 1 : 1;
  newest_ = published;
  changed_.notify_all();
  return published;
}

void NewestWeights::close() {
  const MutexLock lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

void NewestWeights::reopen() {
  const MutexLock lock(mutex_);
  is_closed_ = false;
}

bool NewestWeights::is_closed() const {
  const MutexLock lock(mutex_);
  return is_closed_;
}

// The publication from one session. It may outlive the publisher with a thread that was left behind, and then touches
// only itself and the session, which it keeps if that is owned by a shared_ptr.
class WeightsPublisher::Work {
 public:
  Work(NewestWeights& newest, Session& session, const std::vector<Variable>& variables, const Output& step)
      : newest_(newest), session_(session), owner_(session.weak_from_this().lock()), snapshots_(snapshots_of(session)) {
    for (const Variable& variable : variables) {
      names_.push_back(variable.name());
      fetches_.emplace_back(variable);
    }
    fetches_.emplace_back(step);
  }

  std::shared_ptr<const Weights> publish() EXCLUDES(mutex_) {
    int64_t number;
    {
      const MutexLock lock(mutex_);
      number = ++begun_;
    }
    Weights weights = take();
    const MutexLock lock(mutex_);
    if (is_abandoned_) return nullptr;
    if (number < published_) return newest_.get();  // one that began later is there already
    published_ = number;
    return newest_.publish(std::move(weights));
  }

  void run() EXCLUDES(mutex_) {
    while (is_wanted()) {
      try {
        publish();
        told_of_error_ = false;
      } catch (const std::exception& error) {
        if (!std::exchange(told_of_error_, true)) log_warning("no weights are published: {}", error.what());
      }
    }
    const MutexLock lock(mutex_);
    is_done_ = true;
    changed_.notify_all();
  }
  void wake() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    is_wanted_ = true;
    changed_.notify_all();
  }
  // The thread ends when it has published what it was woken for. False: it has not within the time, and publishes
  // nothing more.
  bool end(Seconds timeout) EXCLUDES(mutex_) {
    const Seconds deadline = Clock::real().now() + timeout;
    const MutexLock lock(mutex_);
    is_ending_ = true;
    changed_.notify_all();
    while (!is_done_ && !is_abandoned_) {
      const Seconds left = deadline - Clock::real().now();
      is_abandoned_ = left <= Seconds{0};
      if (!is_abandoned_) changed_.wait_for(mutex_, left);  // wait: a snapshot under way, for kEndTimeout
    }
    return is_done_;
  }

 private:
  bool is_wanted() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    while (!is_wanted_ && !is_ending_) changed_.wait(mutex_);  // wait: wake() after a step, and end()
    return std::exchange(is_wanted_, false) && !is_abandoned_;
  }
  Weights take() {
    std::vector<Tensor> values = snapshots_->take(session_, fetches_);
    Weights weights{.step = values.back().item<int64_t>()};
    for (size_t i = 0; i < names_.size(); ++i) {
      weights.tensors.emplace_back(names_[i], copy_of(values[i]));
      values[i] = Tensor();  // released at once: steps may wait for its memory
    }
    return weights;
  }

  NewestWeights& newest_;  // not once is_abandoned_
  Session& session_;
  const std::shared_ptr<Session> owner_;
  const std::shared_ptr<Snapshots> snapshots_;
  std::vector<std::string> names_;
  std::vector<Fetch> fetches_;  // of these, and of the step
  bool told_of_error_ = false;  // by the thread

  Mutex mutex_;
  CondVar changed_;
  bool is_wanted_ GUARDED_BY(mutex_) = false;
  bool is_ending_ GUARDED_BY(mutex_) = false;
  bool is_abandoned_ GUARDED_BY(mutex_) = false;  // the publisher waits no longer
  bool is_done_ GUARDED_BY(mutex_) = false;
  int64_t begun_ GUARDED_BY(mutex_) = 0, published_ GUARDED_BY(mutex_) = 0;  // numbers of publications
};

WeightsPublisher::WeightsPublisher(NewestWeights& newest, WeightsPublisherOptions options)
    : newest_(newest), options_(std::move(options)) {
  if (options_.every_n_steps < 0) {
    throw InvalidArgumentError(
        fmt::format("WeightsPublisher: every_n_steps is {}: want 0 or more", options_.every_n_steps));
  }
  newest_.reopen();
}

WeightsPublisher::~WeightsPublisher() {
  end();
  newest_.close();
}

void WeightsPublisher::begin(Session& session) {
  end();
  const Output step = step_of(session.graph(), options_.global_step);
  const auto work = std::make_shared<Work>(newest_, session, published(session.graph(), options_.variables), step);
  if (options_.every_n_steps > 0) {
    StepWatching& steps = required_capability(
        session.capabilities().step_watching,
        "WeightsPublisher needs a session that tells of its steps (SessionCapabilities::step_watching), which this one "
        "does not: set every_n_steps = 0, and call publish()");
    work->publish();  // here: the first step may wait for readers, and a snapshot would wait for the step
    watch_ = steps.watch_steps({.step = step, .every = options_.every_n_steps, .passed = [work = std::weak_ptr(work)] {
                                  if (const auto living = work.lock()) living->wake();
                                }});
    thread_ = NamedThread("lh-weights", [work] { work->run(); });
  }
  work_ = work;
}

void WeightsPublisher::end() {
  watch_.reset();
  const std::shared_ptr<Work> work = std::exchange(work_, nullptr);
  if (!work || !thread_.joinable()) return;
  if (work->end(kEndTimeout)) return thread_.join();
  log_error(
      "a snapshot for NewestWeights waits for a step that does not end, and its thread is left behind: call "
      "WeightsPublisher::end() between two steps");
  thread_.detach();
}

std::shared_ptr<const Weights> WeightsPublisher::publish() {
  if (!work_) throw FailedPreconditionError("WeightsPublisher::publish() was called before begin()");
  return work_->publish();
}

}  // namespace longhaul
