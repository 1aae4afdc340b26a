#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "longhaul/base/mutex.h"
#include "longhaul/data/batch_memory.h"
#include "longhaul/data/batch_order.h"
#include "longhaul/data/dataset.h"
#include "longhaul/data/prefetcher.h"

namespace longhaul {

struct DataLoaderOptions {
  int64_t batch_size = 1;  // of each replica
  int64_t seed = 0;
  bool shuffle = true;         // each epoch in its own order, drawn from the seed
  int64_t num_epochs = 0;      // 0: no end
  bool drop_remainder = true;  // false: the last batch may be smaller, and a replica may end a step before another
  int64_t num_replicas = 1;    // each takes its part of every step: see BatchOrder
  int64_t replica = 0;
  int num_threads = 1;  // that prepare batches, each one at a time; 0: the calling thread does, on request
  int prefetch = 0;     // most batches ready or being made; at least one for each thread; 0: two for each
  Seconds timeout{0};   // how long to wait for a batch that is not ready; 0: until stop()
};

// Batches of a dataset in a seeded random order. Its own threads ("lh-data-0", ...) prepare them ahead, and yet they
// depend only on the position: how many examples all replicas have taken since the training run began. A program that
// keeps the position with the model (ops::load_batch does; a multiple of the global step works too) gets the same
// batches after any restart as an uninterrupted run.
//
//   DataLoader loader(tensor_dataset({images, labels}), {.batch_size = 64, .seed = 7, .num_threads = 2});
//   for (int64_t step = restored_step; ...; ++step) train(loader.at(step * loader.stride()));
//
// The threads start with the first call, at its position; so restoring a position before that costs nothing. A call for
// a position other than the next one (the variable was assigned) restarts them there.
//
// Any thread may call any method; calls for batches are served one after another. A batch belongs to the caller; its
// memory is reused once no handle is left.
class DataLoader {
 public:
  // InvalidArgumentError: the dataset is null or empty, or an option is out of range; the message says which.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  // Stops, and waits for calls to the dataset that are under way.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // The batch that begins at `position`; next() continues after it. Calling it again for the same position returns the
  // same batch.
  //
  // OutOfRangeError, a clean stop: the epochs have ended. CancelledError: stop() was called. DeadlineExceededError: the
  // timeout. An error from the dataset is thrown here, with the example's number, when its batch is requested
  // (kOutOfRange as kInvalidArgument); requesting it again retries. InvalidArgumentError: `position` is negative, or
  // the examples of the batch differ in their components, dtypes or shapes.
  Batch at(int64_t position) EXCLUDES(turn_);

  // at(position()), for programs that do not keep a position elsewhere.
  Batch next() EXCLUDES(turn_);

  // Where next() continues; 0 at first. A failed call does not change it.
  int64_t position() const { return position_; }
  // Also during another thread's call, which then does not move the position.
  void seek(int64_t position) { position_ = position; }

  // How far a batch moves the position: batch_size * num_replicas.
  int64_t stride() const { return order_.stride(); }

  const Dataset& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

  // Permanent: ends waits for a batch, and the threads after their current example.
  void stop();

 private:
  struct Last {
    int64_t position;
    Batch batch;
  };

  Batch take(int64_t position, int64_t position_before) REQUIRES(turn_);
  Batch make(int64_t position, const std::atomic<bool>& abandoned) const;
  Batch make_whole(std::span<const int64_t> examples, int64_t position) const;

  const std::shared_ptr<const Dataset> dataset_;
  const BatchDataset* const batches_;  // the dataset, if it makes whole batches; else nullptr
  const DataLoaderOptions options_;
  const BatchOrder order_;
  const BatchMemory memory_;
  std::atomic<int64_t> position_ = 0;
  std::atomic<bool> stopped_ = false;
  Mutex turn_;  // held while waiting for or making a batch: serialises calls
  std::optional<Last> last_ GUARDED_BY(turn_);
  std::optional<Prefetcher> prefetcher_;  // destroyed first
};

}  // namespace longhaul
