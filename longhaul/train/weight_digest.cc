#include "longhaul/train/weight_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/events/summary.h"
#include "longhaul/io/crc64.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul {
namespace {

constexpr Seconds kLook{1};  // until a waiting thread looks around again

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
  for (const NamedTensor& tensor : tensors) crc = extend_by(crc, tensor);
  return fmt::format("crc64:{:016x}", crc);
}

WeightDigests::WeightDigests(const Graph& graph, Output global_step, std::shared_ptr<FileWriter> writer)
    : writer_(std::move(writer)) {
  for (const VariableInfo& variable : ops::global_variables(graph)) {
    names_.push_back(variable.name());
    fetches_.emplace_back(variable.read);
  }
  fetches_.emplace_back(std::move(global_step));
  thread_ = NamedThread("lh-digests", [this] { work(); });
}

WeightDigests::~WeightDigests() {
  {
    MutexLock lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void WeightDigests::take(Session& session) {
  std::vector<Tensor> values = session.run(fetches_, {}, {.snapshot = true});
  auto taken = std::make_unique<Taken>();
  taken->step = values.back().item<int64_t>();
  for (size_t i = 0; i < names_.size(); ++i) taken->tensors.push_back({names_[i], std::move(values[i])});
  MutexLock lock(mutex_);
  while (waiting_) changed_.wait_for(mutex_, kLook);
  waiting_ = std::move(taken);
  changed_.notify_all();
}

void WeightDigests::take_if_due(Session& session, int64_t every) {
  const auto step = session.run(fetches_.back()).item<int64_t>();
  if (step > 0 && step % every == 0) take(session);
}

void WeightDigests::finish() {
  MutexLock lock(mutex_);
  while (waiting_ || busy_) changed_.wait_for(mutex_, kLook);
}

void WeightDigests::work() {
  while (true) {
    std::unique_ptr<Taken> taken;
    {
      MutexLock lock(mutex_);
      busy_ = false;
      changed_.notify_all();
      while (!waiting_ && !stop_) changed_.wait_for(mutex_, kLook);
      if (!waiting_) return;
      taken = std::move(waiting_);
      busy_ = true;
      changed_.notify_all();
    }
    write(*std::move(taken));
  }
}

void WeightDigests::write(Taken taken) {
  try {
    writer_->add_summary(text_summary(kWeightDigestTag, weight_digest(std::move(taken.tensors))), taken.step);
  } catch (const std::exception& error) {
    log_error("the digest of the weights at step {} could not be written: {}", taken.step, error.what());
  }
}

}  // namespace longhaul
