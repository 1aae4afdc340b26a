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
  int64_t num_epochs = 0;  // 0: no end
  bool shuffle = true;     // each epoch in an order of its own, drawn from the seed
  int64_t seed = 0;
  int64_t num_replicas = 1;  // each takes its part of every step (data/batch_order.h)
  int64_t replica = 0;
};

// A place in a dataset whose examples have numbers, and what to do with it in a training step.
struct DataPosition {
  Variable position;  // int64 scalar: how many examples all replicas took, over all epochs; saved with the model
  Output indices;     // int64 [batch_size]: the next batch, as it is when the run starts
  Operation advance;  // to be run in the step that trains on the batch
};

// Input that goes on where it was. The position is a variable like the weights: advanced in the step that trains, saved
// in the same checkpoint. So a training that starts again after any checkpoint sees the examples that an undisturbed
// one would have seen; queues, which hold what was read ahead, cannot promise that.
//
//   auto input = ops::data_position(root, {.num_examples = 60'000, .batch_size = 64, .seed = 1});
//   auto images = ops::host_function(root, {input.indices}, {kFloat}, load_images)[0];
//   auto step = ops::group(root, {train_op, input.advance});
//
// Batches run on across the ends of epochs; a last one that would not be full is dropped. At the end of the last epoch
// a run that needs `indices` ends with OutOfRangeError, which is a clean stop. One thread at a time takes steps: two
// could read the same position.
DataPosition data_position(const Scope& scope, const DataPositionOptions& options,
                           std::string_view name = "data_position");

struct LoadedBatch {
  Variable position;               // as in DataPosition
  std::vector<Output> components;  // the next batch, as it is when the run starts
  Operation advance;               // to be run in the step that trains on the batch
};

// The same with a loader that reads the examples itself, ahead of time: the batch is the loader's at the position. Of
// shape [batch_size, ...] where remainders are dropped, else [?, ...]; dtypes and the other sizes are those of example
// 0, which is read to know them, and a batch that has others is refused.
//
//   DataLoader loader(dataset, {.batch_size = 64, .seed = 7});
//   auto input = ops::load_batch(root, &loader);
//   auto loss = ops::cross_entropy(root, model(input.components[0]), input.components[1]);
//   auto step = ops::group(root, {optimizer.minimize(loss), input.advance});
//
// Errors of the loader's (data/data_loader.h) end the run. A session's close() does not end a wait for the dataset;
// loader.stop() does.
LoadedBatch load_batch(const Scope& scope, const MaybeOwned<DataLoader>& loader, std::string_view name = "data_loader");

// How the inputs of load_batch() in a graph were used so far, in this process.
struct LoadedInput {
  std::string name;       // of the variable of its position
  int64_t position = -1;  // where the last batch was taken; -1: none was
  int64_t takes = 0;      // how often in a row a batch was taken there
};
std::vector<LoadedInput> loaded_inputs(const Graph& graph);

// What decides which examples lie at a position, and how far a step goes, for each input of a graph, as "input NAME
// seed" is "7". Checkpoints record it.
std::map<std::string, std::string> input_facts(const Graph& graph);
bool is_input_fact(std::string_view name);

inline constexpr const char* kInputFacts[] = {"num_examples", "batch_size", "shuffle", "seed", "num_replicas"};
std::string input_fact_attr(
    std::string_view fact);  // of load_batch()'s operation; ExampleOrder has them by their names

}  // namespace longhaul::ops
