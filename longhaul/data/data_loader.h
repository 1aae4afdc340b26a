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
  bool shuffle = true;         // true: each epoch has its own order, drawn from the seed
  int64_t num_epochs = 0;      // 0: no end
  bool drop_remainder = true;  // false: the last batch may be smaller, and one replica may make one step fewer
  int64_t num_replicas = 1;    // each takes a part of every step: see BatchOrder
  int64_t replica = 0;
  int num_threads = 1;  // to prepare batches, one per thread at a time; 0: the calling thread prepares each on request
  int prefetch = 0;     // the most batches that are ready or in preparation; at least one per thread; 0: two per thread
  Seconds timeout{0};   // for waiting until a batch is ready; 0: none, wait until stop()
};

// Makes batches of a dataset in a seeded random order. Its own threads ("lh-data-0", ...) prepare them ahead. Still, a
// batch depends only on its position: the number of examples that all replicas have taken since the training run began.
// A program that saves the position with the model gets the same batches after any restart as an uninterrupted run.
// ops::load_batch saves it; a multiple of the global step works too.
//
//   DataLoader loader(tensor_dataset({images, labels}), {.batch_size = 64, .seed = 7, .num_threads = 2});
//   for (int64_t step = restored_step; step < last_step; ++step) train(loader.at(step * loader.stride()));
//
// The threads start with the first call, at its position, so restoring a position before that costs nothing. A call for
// a position other than the next one (after the variable was assigned) restarts them there.
//
// Any thread may call any method; calls for batches are served one after another. A batch belongs to the caller. Its
// memory is reused once no handle to it is left.
class DataLoader {
 public:
  // InvalidArgumentError: the dataset is null or empty, or an option is out of range; the message says which.
  DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options);
  // Stops the threads, and waits for calls to the dataset that are under way.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Returns the batch that begins at `position`; next() continues after it. Another call for the same position returns
  // the same batch.
  //
  // OutOfRangeError, a clean stop: the epochs have ended. CancelledError: stop() was called. DeadlineExceededError: the
  // timeout was reached. An error from the dataset is thrown here when its batch is requested, with the example's
  // number (kOutOfRange as kInvalidArgument); another request retries. InvalidArgumentError: `position` is negative, or
  // the examples of the batch differ in their components, dtypes or shapes.
  Batch at(int64_t position) EXCLUDES(turn_);

  // at(position()), for programs that do not keep a position elsewhere. Warns if its first call is made in a step
  // function after step 0: then a restarted training would take the first batches again.
  Batch next() EXCLUDES(turn_);

  // The position at which next() continues; 0 at first. A failed call does not change it.
  int64_t position() const { return position_; }
  // Sets the position. If another thread's call is under way, that call then does not change it.
  void seek(int64_t position) { position_ = position; }

  // The distance between the positions of two steps: batch_size * num_replicas.
  int64_t stride() const { return order_.stride(); }

  const Dataset& dataset() const { return *dataset_; }
  const DataLoaderOptions& options() const { return options_; }

  // Ends waits for a batch, and ends the threads after their current example. Cannot be undone.
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
  Mutex turn_;  // held while a call waits for or makes a batch: serialises calls
  std::optional<Last> last_ GUARDED_BY(turn_);
  std::optional<Prefetcher> prefetcher_;  // destroyed first
};

}  // namespace longhaul
