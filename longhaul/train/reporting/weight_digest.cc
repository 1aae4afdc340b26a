#include "longhaul/train/reporting/weight_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/base/mutex.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/records/crc64.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/session/snapshots.h"

namespace longhaul {
namespace {

std::string_view bytes_of(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), tensor.size_bytes()};
}

uint64_t extend_by_strings(uint64_t crc, std::span<const std::string> strings) {
  for (const std::string& text : strings) {
    char size[8];
    for (size_t i = 0; i < sizeof size; ++i) size[i] = static_cast<char>(text.size() >> (8 * i));
    crc = extend_crc64(extend_crc64(crc, {size, sizeof size}), text);
  }
  return crc;
}

uint64_t extend_by(uint64_t crc, const NamedTensor& tensor) {
  const auto& [name, value] = tensor;
  std::string header = name + '\0' + std::string(dtype_name(value.dtype())) + '\0' + value.shape().to_string() + '\0';
  crc = extend_crc64(crc, header);
  if (value.dtype() == kString) return extend_by_strings(crc, value.flat<std::string>());
  return extend_crc64(crc, bytes_of(value));
}

}  // namespace

std::string weight_digest(std::vector<NamedTensor> tensors) {
  std::sort(tensors.begin(), tensors.end(), [](auto& a, auto& b) { return a.name < b.name; });
  uint64_t crc = 0;
  for (NamedTensor& tensor : tensors) {
    crc = extend_by(crc, tensor);
    tensor.value = Tensor();
  }
  return fmt::format("crc64:{:016x}", crc);
}

// What the thread and its owner share.
class WeightDigests::Worker {
 public:
  struct Taken {
    int64_t step = 0;
    std::vector<NamedTensor> tensors;
  };

  explicit Worker(std::shared_ptr<FileWriter> writer) : writer_(std::move(writer)) {}

  // False: the ones before are not done.
  bool hand_over(std::unique_ptr<Taken> taken, Seconds timeout, const Deadline* deadline) {
    const Deadline::Wait notified(deadline, mutex_, changed_);
    MutexLock lock(mutex_);
    if (!wait([this]() REQUIRES(mutex_) { return waiting_ == nullptr; }, timeout, deadline)) return false;
    waiting_ = std::move(taken);
    changed_.notify_all();
    return true;
  }

  bool finish(Seconds timeout, const Deadline* deadline) {
    const Deadline::Wait notified(deadline, mutex_, changed_);
    MutexLock lock(mutex_);
    return wait([this]() REQUIRES(mutex_) { return waiting_ == nullptr && !busy_; }, timeout, deadline);
  }

  // False: the thread goes on.
  bool stop(Seconds timeout, const Deadline* deadline) {
    const Deadline::Wait notified(deadline, mutex_, changed_);
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
    return wait([this]() REQUIRES(mutex_) { return has_ended_; }, timeout, deadline);
  }

  // The thread.
  void work() {
    while (const std::unique_ptr<Taken> taken = next()) write(std::move(*taken));
  }

 private:
  template <typename Condition>
  bool wait(Condition condition, Seconds timeout, const Deadline* deadline) REQUIRES(mutex_) {
    const Seconds give_up = Clock::real().now() + timeout;
    const auto half = half_time(deadline, Clock::real());
    while (!condition()) {
      const Seconds left = std::min(give_up, half().value_or(give_up)) - Clock::real().now();
      if (left <= Seconds{0}) return false;
      changed_.wait_for(mutex_, left);  // wait: for the thread, which may hang on its disk
    }
    return true;
  }

  // nullptr: there are no more.
  std::unique_ptr<Taken> next() {
    MutexLock lock(mutex_);
    busy_ = false;
    changed_.notify_all();
    while (!waiting_ && !stop_) changed_.wait(mutex_);  // wait: hand_over() and stop() end it
    has_ended_ = !waiting_;
    busy_ = !has_ended_;
    changed_.notify_all();
    return std::move(waiting_);
  }

  void write(Taken taken) {
    try {
      writer_->add_summary(text_summary(kWeightDigestTag, weight_digest(std::move(taken.tensors))), taken.step);
    } catch (...) {
      log_error("the weight digest of step {} could not be written: {}", taken.step,
                message_of(std::current_exception()));
    }
  }

  const std::shared_ptr<FileWriter> writer_;
  Mutex mutex_;
  CondVar changed_;
  std::unique_ptr<Taken> waiting_ GUARDED_BY(mutex_);
  bool busy_ GUARDED_BY(mutex_) = false, stop_ GUARDED_BY(mutex_) = false, has_ended_ GUARDED_BY(mutex_) = false;
};

WeightDigests::WeightDigests(const Graph& graph, Output global_step, std::shared_ptr<FileWriter> writer,
                             Seconds timeout, const Deadline* deadline)
    : timeout_(timeout), deadline_(deadline), worker_(std::make_shared<Worker>(std::move(writer))) {
  for (const VariableInfo& variable : ops::global_variables(graph)) {
    names_.push_back(variable.name());
    fetches_.emplace_back(variable.read);
  }
  fetches_.emplace_back(global_step);
  thread_ = NamedThread("lh-digests", [worker = worker_] { worker->work(); });
}

WeightDigests::~WeightDigests() {
  const Seconds start = Clock::real().now();
  if (worker_->stop(timeout_, deadline_)) {
    thread_.join();
    return;
  }
  log_error(
      "weight digests could not be written within {:.3g} s and are dropped: does the file system of the event "
      "files hang?",
      (Clock::real().now() - start).count());
  thread_.detach();
}

void WeightDigests::take(Session& session) {
  std::vector<Tensor> values = snapshots_of(session)->take(session, fetches_);
  auto taken = std::make_unique<Worker::Taken>();
  const auto step = taken->step = values.back().item<int64_t>();
  for (size_t i = 0; i < names_.size(); ++i) taken->tensors.push_back({names_[i], std::move(values[i])});
  const Seconds start = Clock::real().now();
  if (worker_->hand_over(std::move(taken), timeout_, deadline_)) return;
  log_error("the weight digest of step {} is skipped: earlier ones could not be written within {:.3g} s", step,
            (Clock::real().now() - start).count());
}

void WeightDigests::take_if_due(Session& session, int64_t every) {
  const auto step = session.run(fetches_.back()).item<int64_t>();
  if (step > 0 && step % every == 0) take(session);
}

bool WeightDigests::finish(const Deadline* deadline) {
  return worker_->finish(timeout_, deadline);
}

}  // namespace longhaul
