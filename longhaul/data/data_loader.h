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
  bool shuffle = true;         // each epoch in an order of its own, drawn from the seed
  int64_t num_epochs = 0;      // 0: no end
  bool drop_remainder = true;  // false: the last batch may be smaller, and a replica may end a step before another
  int64_t num_replicas = 1;    // each takes its part of every step: see BatchOrder
  int64_t replica = 0;
  int num_threads = 1;  // that prepare batches, each one at a time; 0: the caller's does, when it asks
  int prefetch = 0;     // batches ready or being made, at most: one for each thread at least; 0: two for each
  Seconds timeout{0};   // how long to wait for a batch that is not ready; 0: until stop()
};

// Batches of a dataset in a seeded random order, prepared ahead by threads of its own ("lh-data-0", ...), and all the
// same a function of the position alone: how many examples were taken since the training began, by all replicas.
// Whoever keeps the position with the model (ops::load_batch does; a multiple of the global step is as good) sees after
// any restart the batches that an undisturbed training would have seen.
//
//   DataLoader loader(tensor_dataset({images, labels}), {.batch_size = 64, .seed = 7, .num_threads = 2});
//   for (int64_t step = restored_step; ...; ++step) train(loader.at(step * loader.stride()));
//
// The threads begin with the first call, where that call is; so a position that was restored before it costs nothing.
// A call for another position than the next one (the variable was assigned) makes them begin again there.
//
// Any thread may call any method; calls for batches are served one after the other. A batch is the caller's; its memory
// is used again once nobody has it.
class DataLoader {
 public:
  // InvalidArgumentError: the dataset is null or empty, or an option is out of range; it says which.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  // Stops; waits for calls of the dataset under way.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // The batch that begins at `position`; next() goes on behind it. Asked again for the same, it returns the same.
  //
  // OutOfRangeError, which is a clean stop: the epochs have ended. CancelledError: stop() was called.
  // DeadlineExceededError: the timeout. What the dataset throws comes here, with the example's number, when its batch
  // is asked for (kOutOfRange as kInvalidArgument); asking again tries again. InvalidArgumentError: `position` is
  // negative, or the examples of the batch differ in their components, dtypes or shapes.
  Batch at(int64_t position) EXCLUDES(turn_);

  // at(position()), for programs that keep no position elsewhere.
  Batch next() EXCLUDES(turn_);

  // Where next() goes on; 0 at first. A call that fails leaves it.
  int64_t position() const { return position_; }
  // Also during a call of another thread's, which then does not move it.
  void seek(int64_t position) { position_ = position; }

  // How far a batch moves the position: batch_size * num_replicas.
  int64_t stride() const { return order_.stride(); }

  const Dataset& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

  // For good: ends what waits for a batch, and the threads after the example under way.
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
  const BatchDataset* const batches_;  // the dataset, if it makes whole batches
  const DataLoaderOptions options_;
  const BatchOrder order_;
  const BatchMemory memory_;
  std::atomic<int64_t> position_ = 0;
  std::atomic<bool> stopped_ = false;
  Mutex turn_;  // held while a batch is waited for or made: calls follow each other
  std::optional<Last> last_ GUARDED_BY(turn_);
  std::optional<Prefetcher> prefetcher_;  // ends first
};

}  // namespace longhaul
