#include "longhaul/data/data_loader.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/step_of_thread.h"
#include "longhaul/data/stack_examples.h"

namespace longhaul {
namespace {

constexpr char kName[] = "data loader";

std::shared_ptr<const Dataset> not_null(std::shared_ptr<const Dataset> dataset) {
  if (!dataset) throw InvalidArgumentError("data loader: the dataset is a null pointer");
  return dataset;
}

DataLoaderOptions checked(const DataLoaderOptions& options) {
  if (options.num_threads < 0) {
    throw InvalidArgumentError(fmt::format(
        "data loader: num_threads is {}; it must be at least 0 (0: batches are prepared on the caller's thread)",
        options.num_threads));
  }
  if (options.prefetch < 0 || (options.prefetch > 0 && options.prefetch < options.num_threads)) {
    throw InvalidArgumentError(
        fmt::format("data loader: prefetch is {} and num_threads {}; prefetch must be at least num_threads, or 0 for "
                    "two batches per thread",
                    options.prefetch, options.num_threads));
  }
  if (!(options.timeout.count() >= 0)) {  // nor NaN
    throw InvalidArgumentError(
        fmt::format("data loader: timeout is {} s; it must be at least 0 (0: no timeout)", options.timeout.count()));
  }
  return options;
}

BatchOrderOptions order_of(const Dataset& dataset, const DataLoaderOptions& options) {
  return {.num_examples = dataset.size(),
          .batch_size = options.batch_size,
          .seed = options.seed,
          .shuffle = options.shuffle,
          .num_epochs = options.num_epochs,
          .drop_remainder = options.drop_remainder,
          .num_replicas = options.num_replicas,
          .replica = options.replica};
}

void check_rows(const Batch& batch, int64_t count) {
  if (batch.empty()) throw InvalidArgumentError("the dataset returned no tensors; a batch must have at least one");
  for (const Tensor& component : batch) {
    if (component.defined() && component.shape().rank() > 0 && component.shape().dim(0) == count) continue;
    throw InvalidArgumentError(
        fmt::format("the dataset returned {} for {} examples; the first dimension must be the number of examples",
                    component.to_string(0), count));
  }
}

void warn_of_continued_step() {
  const std::optional<int64_t> step = StepOfThread::current();
  if (step.value_or(0) == 0) return;
  log_warning(
      "data loader: next() is first called in step {} of the training, but begins with the first batch again. A "
      "training that continues should not: call at(step.number * loader.stride()) instead of next()",
      *step);
}

}  // namespace

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options)
    : dataset_(not_null(std::move(dataset))),
      batches_(dynamic_cast<const BatchDataset*>(dataset_.get())),
      options_(checked(options)),
      order_(order_of(*dataset_, options)) {
  if (options.num_threads == 0) return;
  PrefetchWork work{
      .exists = [this](int64_t position) { return order_.size_at(position) > 0; },
      .make = [this](int64_t position, const std::atomic<bool>& abandoned) { return make(position, abandoned); },
      .stride = order_.stride()};
  const int ahead = options.prefetch > 0 ? options.prefetch : 2 * options.num_threads;
  prefetcher_.emplace(std::move(work), options.num_threads, ahead, options.timeout);
}

DataLoader::~DataLoader() = default;

void DataLoader::stop() {
  stopped_ = true;
  if (prefetcher_) prefetcher_->stop();
}

Batch DataLoader::at(int64_t position) {
  const MutexLock turn(turn_);
  return take(position, position_);
}

Batch DataLoader::next() {
  const MutexLock turn(turn_);
  const int64_t position = position_;
  if (position == 0 && !last_) warn_of_continued_step();
  return take(position, position);
}

Batch DataLoader::take(int64_t position, int64_t position_before) {
  order_.check(position, kName);
  if (stopped_) throw CancelledError("data loader: it was stopped");
  if (!last_ || last_->position != position) {
    last_.reset();  // before the wait: its memory may be what the next batch needs
    Batch batch = prefetcher_ ? prefetcher_->at(position) : make(position, stopped_);
    last_ = {position, std::move(batch)};
  }
  position_.compare_exchange_strong(position_before, position + order_.stride());
  return last_->batch;
}

Batch DataLoader::make(int64_t position, const std::atomic<bool>& abandoned) const {
  std::vector<int64_t> examples(static_cast<size_t>(order_.size_at(position)));
  order_.fill(position, examples);
  const int64_t first = order_.first_of(position);
  if (batches_) return make_whole(examples, first);
  return stack_examples(*dataset_, examples, first, memory_, abandoned);
}

Batch DataLoader::make_whole(std::span<const int64_t> examples, int64_t position) const {
  try {
    Batch batch = batches_->get_batch_at(examples, position, memory_);
    check_rows(batch, static_cast<int64_t>(examples.size()));
    return batch;
  } catch (...) {
    rethrow_from(fmt::format("data loader: the batch of {} examples starting with {}, at position {}", examples.size(),
                             examples[0], position));
  }
}

}  // namespace longhaul
