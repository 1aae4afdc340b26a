#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

class Graph;
class Operation;
class Output;
struct Node;

// A function of the program that runs as an operation (ops::host_function), in the program's own process.
using HostFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

// A constant of an operation, known when the graph is built.
using Attr =
    std::variant<int64_t, double, bool, std::string, DType, Shape, Tensor, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, std::vector<DType>, std::vector<Shape>, std::shared_ptr<HostFunction>>;
using Attrs = std::map<std::string, Attr>;

// What an operation may do when it runs, besides computing its outputs from its inputs. Bit flags.
enum OpTraits : uint32_t {
  kPure = 0,
  kTakesInput = 1,      // needs a feed, or takes an element from a queue or reader
  kRandom = 2,          // draws random numbers
  kWritesVariable = 4,  // changes its first input, a variable, and perhaps others of its ref_inputs()
  kSideEffect = 8,      // accesses files or calls the program's own code
  kIsResource = 16,     // a handle to something in the session other than a variable; never run itself
  kMayWait = 32,        // may wait for another run
};

// A handle to a node of a graph. May be copied and compared. Valid as long as its Graph exists.
class Operation {
 public:
  Operation() = default;
  explicit Operation(const Node* node) : node_(node) {}
  bool valid() const { return node_ != nullptr; }
  explicit operator bool() const { return valid(); }

  const std::string& name() const;    // unique in the graph, with scopes: "layer1/add"
  const std::string& type() const;    // "VariableV2", "aten::addmm"
  const std::string& device() const;  // as requested, may be partial or empty
  Graph& graph() const;
  int id() const;  // the order of creation: 0, 1, ...
  uint32_t traits() const;
  // The number of leading inputs that it takes as variables or resources (to read or change), not as values.
  int ref_inputs() const;

  const std::vector<Output>& inputs() const;
  const std::vector<Operation>& control_inputs() const;
  int num_outputs() const;
  Output output(int index = 0) const;

  const Attrs& attrs() const;
  // nullptr: it has no attr of that name and type.
  template <typename T>
  const T* find_attr(const std::string& name) const {
    const auto it = attrs().find(name);
    return it == attrs().end() ? nullptr : std::get_if<T>(&it->second);
  }
  // InternalError: it has no such attr.
  template <typename T>
  const T& attr(const std::string& name) const {
    const T* found = find_attr<T>(name);
    if (found == nullptr) throw InternalError("operation " + this->name() + " has no attr " + name);
    return *found;
  }

  const Node* node() const { return node_; }
  bool operator==(const Operation&) const = default;

 private:
  const Node* node_ = nullptr;
};

// One of the tensors that an operation returns.
class Output {
 public:
  Output() = default;
  Output(Operation op, int index) : op_(op), index_(index) {}
  bool valid() const { return op_.valid(); }

  Operation op() const { return op_; }
  int index() const { return index_; }
  std::string name() const;  // "layer1/add:0"
  DType dtype() const;
  const Shape& shape() const;  // as far as known
  Graph& graph() const { return op_.graph(); }
  bool operator==(const Output&) const = default;

 private:
  Operation op_;
  int index_ = 0;
};

struct OutputHash {
  size_t operator()(const Output& output) const {
    return std::hash<const void*>()(output.op().node()) * 31 + static_cast<size_t>(output.index());
  }
};
struct OperationHash {
  size_t operator()(const Operation& op) const { return std::hash<const void*>()(op.node()); }
};

}  // namespace longhaul
