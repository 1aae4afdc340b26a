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

// The part of a partitioned variable that one variable holds (SaveSliceInfoDef): a box, with one number for each
// dimension. The variable is saved as that slice of `full_name`.
struct SaveSliceInfo {
  std::string full_name;
  std::vector<int64_t> full_shape, offset, shape;
  bool operator==(const SaveSliceInfo&) const = default;
};

// A collection's description of a variable (VariableDef): enough to read, initialise and save it.
struct VariableInfo {
  Output ref;             // "w:0", the variable itself, an argument of Assign and the optimizers
  Output read;            // "w/read:0", its value
  Operation initializer;  // "w/Assign"
  Output initial_value;
  bool trainable = false;
  std::optional<SaveSliceInfo> slice;  // nullopt: not a part of another variable
  const std::string& name() const { return ref.op().name(); }
  bool operator==(const VariableInfo&) const = default;
};

// A message of any type (google.protobuf.Any), even one that the library does not know.
struct AnyMessage {
  std::string type_url;
  std::string value;  // serialized
  bool operator==(const AnyMessage&) const = default;
};

struct Saveable;  // ops/saveable.h

// An element of a collection. Strings are texts or serialized protos (bytes_list); a saver is kept as the bytes of its
// SaverDef. Saveables have no meaning outside this program, so meta graphs omit them.
using CollectionItem = std::variant<int64_t, float, std::string, Operation, Output, VariableInfo, AnyMessage,
                                    std::shared_ptr<const Saveable>>;

// A program's computation: operations, which never change once added, and named collections of its parts.
//
//   open --finalize--> finalized (more operations are refused) --unfinalize--> open
//
// Any thread may read at any time; only one thread at a time may add operations.
class Graph {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // The graph that is used if a program gives none. Never destroyed.
  static Graph& default_graph();
  // Returns `graph`, or the default graph if `graph` is nullptr. InvalidArgumentError: the default graph is empty but
  // another graph of the program is not, so the program probably forgot the option that the message names.
  static Graph& or_default(Graph* graph, std::string_view option);

  // Adds an operation. Its name gets a suffix (_1, _2, ...) if it is taken. The dtypes and shapes of its outputs are
  // taken from the op catalogs. FailedPreconditionError: the graph is finalized ("Graph is finalized and cannot be
  // modified."). NotFoundError: there is no such type. InvalidArgumentError: the type does not allow these inputs or
  // attrs, an input is from another graph, or the name is malformed.
  Operation add_operation(OperationSpec spec);

  // Marks a name (of an operation or a scope) as taken and returns it. If it was already taken, the result has a
  // suffix.
  std::string unique_name(std::string_view name);
  bool name_taken(std::string_view name) const;

  // Look up by name ("w", or "w:0" for an output). If there is none, find_* return an invalid handle, and the others
  // throw NotFoundError.
  Operation find_operation(std::string_view name) const;
  Operation operation(std::string_view name) const;
  Output find_output(std::string_view name) const;
  Output output(std::string_view name) const;
  std::vector<Operation> operations() const;  // in order of creation
  int num_operations() const;

  void add_to_collection(const std::string& key, CollectionItem item);
  // Replaces, in all collections, the entries for the variable `changed.ref` with `changed`, which may have another
  // initializer.
  void replace_variable(const VariableInfo& changed);
  std::vector<CollectionItem> collection(const std::string& key) const;  // empty if there is no such collection
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

  // After finalize(), no operations may be added until unfinalize(), which is for code that finalizes a graph
  // temporarily.
  void finalize();
  void unfinalize();
  bool finalized() const;

  // Each operation that draws random numbers derives its own stream from this seed. 0: not set; the streams differ in
  // each session.
  void set_seed(uint64_t seed);
  uint64_t seed() const;

 private:
  std::string unique_name_locked(std::string_view name) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Node>> nodes_ GUARDED_BY(mutex_);
  std::map<std::string, const Node*, std::less<>> by_name_ GUARDED_BY(mutex_);
  std::map<std::string, int, std::less<>> names_ GUARDED_BY(mutex_);  // by name: the next suffix to try
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
