#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/op_catalog.h"
#include "longhaul/graph/operation.h"

namespace longhaul {

// The names of a graph's standard collections, as in files.
namespace collections {
inline constexpr char kGlobalVariables[] = "variables";
inline constexpr char kLocalVariables[] = "local_variables";
inline constexpr char kTrainableVariables[] = "trainable_variables";
inline constexpr char kGlobalStep[] = "global_step";
inline constexpr char kSummaries[] = "summaries";
inline constexpr char kSummaryOp[] = "summary_op";
inline constexpr char kReadyOp[] = "ready_op";
inline constexpr char kReadyForLocalInitOp[] = "ready_for_local_init_op";
inline constexpr char kInitOp[] = "init_op";
inline constexpr char kLocalInitOp[] = "local_init_op";
inline constexpr char kTableInitializers[] = "table_initializer";
inline constexpr char kSavers[] = "savers";
inline constexpr char kSaveableObjects[] = "saveable_objects";
inline constexpr char kTrainOp[] = "train_op";
inline constexpr char kQueueRunners[] = "queue_runners";
}  // namespace collections

// The part of a larger, partitioned variable that a variable holds (SaveSliceInfoDef): a box with one number for each
// dimension. It is saved as that slice of `full_name`.
struct SaveSliceInfo {
  std::string full_name;
  std::vector<int64_t> full_shape, offset, shape;
  bool operator==(const SaveSliceInfo&) const = default;
};

// A collection's description of a variable (VariableDef): enough to read, initialise and save it.
struct VariableInfo {
  Output ref;             // "w:0", the variable itself, as Assign and the optimizers take it
  Output read;            // "w/read:0", its value
  Operation initializer;  // "w/Assign"
  Output initial_value;
  bool trainable = false;
  std::optional<SaveSliceInfo> slice;  // nullopt: not a part of another variable
  const std::string& name() const { return ref.op().name(); }
  bool operator==(const VariableInfo&) const = default;
};

// A message of any type, not necessarily known here (google.protobuf.Any).
struct AnyMessage {
  std::string type_url;
  std::string value;  // serialized
  bool operator==(const AnyMessage&) const = default;
};

struct Saveable;  // ops/saveable.h

// An element of a collection. Strings are serialized protos or texts (bytes_list); savers are kept as SaverDef bytes.
// Saveables have no meaning outside this program and are left out of meta graphs.
using CollectionItem = std::variant<int64_t, float, std::string, Operation, Output, VariableInfo, AnyMessage,
                                    std::shared_ptr<const Saveable>>;

// A program's computation: operations that are added once and never change, and named collections of its parts.
//
//   open --finalize--> finalized (more operations are refused) --unfinalize--> open
//
// Any thread may read at any time; only one thread at a time may add.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The graph used when none is given. Never destroyed.
  static Graph& default_graph();
  // Resolves an option for a graph: `graph`, or the default graph if it is nullptr. InvalidArgumentError: the default
  // graph is empty but another graph of the program is not, so the option was forgotten; the message names it.
  static Graph& or_default(Graph* graph, std::string_view option);

  // Adds an operation. Its name gets a suffix (_1, _2, ...) if it is taken; its outputs' dtypes and shapes come from
  // the op catalogs. FailedPreconditionError: finalized ("Graph is finalized and cannot be modified."). NotFoundError:
  // no such type. InvalidArgumentError: inputs or attrs that the type does not allow, an input from another graph, a
  // malformed name.
  Operation add_operation(OperationSpec spec);

  // Marks a name (of an operation or a scope) as taken and returns it, with a suffix if it was already taken.
  std::string unique_name(std::string_view name);
  bool name_taken(std::string_view name) const;

  // By name ("w", or "w:0" for an output). If there is none, find_* return an invalid handle; the others throw
  // NotFoundError.
  Operation find_operation(std::string_view name) const;
  Operation operation(std::string_view name) const;
  Output find_output(std::string_view name) const;
  Output output(std::string_view name) const;
  std::vector<Operation> operations() const;  // in order of creation
  int num_operations() const;

  void add_to_collection(const std::string& key, CollectionItem item);
  // Replaces the entries for the variable `changed.ref` in all collections by `changed`, for example with another
  // initializer.
  void replace_variable(const VariableInfo& changed);
  std::vector<CollectionItem> collection(const std::string& key) const;  // empty if there is none
  std::vector<std::string> collection_keys() const;
  // The elements of one type, in order.
  template <typename T>
  std::vector<T> collection_of(const std::string& key) const {
    std::vector<T> found;
    for (const CollectionItem& item : collection(key)) {
      if (const T* value = std::get_if<T>(&item)) found.push_back(*value);
    }
    return found;
  }

  // After finalize(), nothing may be added until unfinalize(), which is for code that finalizes a graph temporarily.
  void finalize();
  void unfinalize();
  bool finalized() const;

  // The seed from which each operation that draws random numbers derives its own stream. 0: not set; streams differ in
  // each session.
  void set_seed(uint64_t seed);
  uint64_t seed() const;

 private:
  std::string unique_name_locked(std::string_view name) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Node>> nodes_ GUARDED_BY(mutex_);
  std::map<std::string, const Node*, std::less<>> by_name_ GUARDED_BY(mutex_);
  std::map<std::string, int, std::less<>> names_ GUARDED_BY(mutex_);  // name, and the next suffix to try
  std::map<std::string, std::vector<CollectionItem>> collections_ GUARDED_BY(mutex_);
  bool finalized_ GUARDED_BY(mutex_) = false;
  uint64_t seed_ GUARDED_BY(mutex_) = 0;
};

// The representation of a node, for use by Graph and Operation only.
struct Node {
  Graph* graph;
  int id;
  std::string name, type, device;
  std::vector<Output> inputs;
  std::vector<Operation> control_inputs;
  Attrs attrs;
  OpInfo info;
};

}  // namespace longhaul
