#pragma once

#include <string>
#include <vector>

#include "longhaul/graph/scope.h"
#include "longhaul/ops/saveable.h"
#include "longhaul/proto/saver.pb.h"

namespace longhaul {

// The operations of a graph that save and restore it.
struct SaverNodes {
  struct SavedTensor {
    std::string name;   // in checkpoints
    std::string slice;  // empty, or the part of the tensor of that name: "5 10 0,5:2,1"
    Output read;
    Output restored;         // output of a RestoreV2 operation; a value can be fed instead
    int shard = 0;           // the number of its data file
    bool any_shape = false;  // restored from a tensor of any shape with as many elements
    bool optional = false;   // a checkpoint may lack it: an empty tensor is fed instead
  };
  std::vector<SavedTensor> tensors;  // by shard, and by name
  int num_shards = 1;
  bool sharded = false;
  Output filename;    // the tensor to feed: "save/Const:0"
  Output save;        // "save/control_dependency:0"
  Operation restore;  // "save/restore_all"
};

// The operation of the variable that a saver reads; that of the value itself, if it is not a variable's.
Operation variable_of(const Output& read);

// An attribute of a RestoreV2 operation that reads one tensor that a checkpoint may lack.
inline constexpr const char* kOptionalAttr = "_optional";

struct SaverGraphOptions {
  std::string filename = "model";  // of the save operation, unless fed
  bool sharded = false;            // a data file for each device that reads saved values, sorted by name
  bool restore_sequentially = false;
};

// Whether a value is on a device that names a task of a cluster, and a file for each device can be made.
bool name_tasks(const std::vector<Saveable>& saveables);

// Adds the operations under `scope`, with the names that TensorFlow's Saver gives them. The saveables are sorted by
// name. InvalidArgumentError: "All tensors of a saveable object must be on the same device", when sharding.
SaverNodes add_saver_nodes(const Scope& scope, const std::vector<Saveable>& saveables,
                           const SaverGraphOptions& options);

// Finds the operations in a graph that has them. NotFoundError, InvalidArgumentError: the graph has no such operations.
// UnimplementedError: it saves V1 checkpoints.
SaverNodes find_saver_nodes(const Graph& graph, const proto::SaverDef& saver_def);
SaverNodes saver_nodes_at(const Output& filename, const Output& save, const Operation& restore, bool sharded);

}  // namespace longhaul
