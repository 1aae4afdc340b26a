#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/base/maybe_owned.h"
#include "longhaul/data/data_loader.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {

struct DataPositionOptions {
  int64_t num_examples = 0;
  int64_t batch_size = 1;  // of each replica
  int64_t num_epochs = 0;  // 0: unlimited
  bool shuffle = true;     // a new order in each epoch, drawn from the seed
  int64_t seed = 0;
  int64_t num_replicas = 1;  // each takes a part of every step (data/batch_order.h)
  int64_t replica = 0;
};

// A position in a dataset with numbered examples, and the operations for a training step.
struct DataPosition {
  Variable position;  // int64 scalar: the examples taken by all replicas, over all epochs; saved with the model
  Output indices;     // int64 [batch_size]: the next batch, as of the start of the run
  Operation advance;  // run it in the step that trains on the batch
};

// Input that resumes at its position. The position is a variable like the weights: the training step advances it, and
// it is saved in the same checkpoint. So a run that is restarted from any checkpoint sees the examples that an
// uninterrupted run would have seen. Queues cannot guarantee that, because they hold examples that were read ahead.
//
//   auto input = ops::data_position(root, {.num_examples = 60'000, .batch_size = 64, .seed = 1});
//   auto images = ops::host_function(root, {input.indices}, {kFloat}, load_images).output();
//   auto step = ops::group(root, {train_op, input.advance});
//
// A batch may span the end of an epoch. A last batch that would not be full is dropped. At the end of the last epoch, a
// run that needs `indices` fails with OutOfRangeError, which is a clean stop. Only one thread may take steps, because
// two could read the same position.
DataPosition data_position(const Scope& scope, const DataPositionOptions& options,
                           std::string_view name = "data_position");

struct LoadedBatch {
  Variable position;               // as in DataPosition
  std::vector<Output> components;  // the next batch, as of the start of the run
  Operation advance;               // run it in the step that trains on the batch
};

// The same with a loader, which reads the examples itself, ahead of time: the batch is the loader's batch at the
// position. Its shape is [batch_size, ...] if remainders are dropped, else [?, ...]. The dtypes and the other sizes are
// those of example 0, which is read to find them; a batch with different ones is refused.
//
//   DataLoader loader(dataset, {.batch_size = 64, .seed = 7});
//   auto input = ops::load_batch(root, &loader);
//   auto loss = ops::cross_entropy_loss(root, model(input.components[0]), input.components[1]);
//   auto step = ops::group(root, {optimizer.minimize(loss), input.advance});
//
// The loader's errors (data/data_loader.h) end the run. To end a wait for the dataset, call loader.stop(); a session's
// close() does not end it.
LoadedBatch load_batch(const Scope& scope, const MaybeOwned<DataLoader>& loader, std::string_view name = "data_loader");

// The use of one input of load_batch() in this process so far.
struct LoadedInput {
  std::string name;       // of its position variable
  int64_t position = -1;  // of the last batch taken; -1: none
  int64_t takes = 0;      // the number of consecutive batches taken there
};
std::vector<LoadedInput> loaded_inputs(const Graph& graph);

// For each input of a graph, the settings that determine the examples at a position and the length of a step, such as
// "input NAME seed": "7". Checkpoints record them.
std::map<std::string, std::string> input_facts(const Graph& graph);
bool is_input_fact(std::string_view name);

inline constexpr const char* kInputFacts[] = {"num_examples", "batch_size", "shuffle", "seed", "num_replicas"};
std::string input_fact_attr(
    std::string_view fact);  // of load_batch()'s operation; ExampleOrder has them by their names

}  // namespace longhaul::ops
