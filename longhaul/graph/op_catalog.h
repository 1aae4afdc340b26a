#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// What somebody wants to add to a graph.
struct OperationSpec {
  std::string type;
  std::string name;  // full, with scopes; made unique by a suffix
  std::vector<Output> inputs;
  Attrs attrs;
  std::vector<Operation> control_inputs;
  std::string device;
};

// What an operation of that spec is and returns.
struct OpInfo {
  struct Result {
    DType dtype;
    Shape shape;
  };
  std::vector<Result> outputs;
  uint32_t traits = kPure;
  int ref_inputs = 0;
};

// Which types of operation there are, what they take and return. Catalogs live for ever and may be asked from any
// thread.
class OpCatalog {
 public:
  virtual ~OpCatalog() = default;

  // nullopt: the type is not of this catalog. InvalidArgumentError: it is, but cannot be called so; the message has the
  // signature and what was given.
  virtual std::optional<OpInfo> resolve(const OperationSpec& spec) const = 0;
};

// The operations with TensorFlow's names that need no libtorch to be understood: state, control, summaries, save and
// restore.
const OpCatalog& builtin_op_catalog();

// Adds a catalog for all graphs of the process; longhaul.h does so with libtorch's operators. Twice the same is once.
void install_op_catalog(const OpCatalog* catalog);

// Asks the built-in catalog, then the installed ones. NotFoundError: no catalog has the type.
OpInfo resolve_operation(const OperationSpec& spec);

// For messages about types that no catalog has: "; libtorch's operators come with #include <longhaul/longhaul.h>" while
// no catalog is installed, and then nothing.
std::string hint_of_missing_catalogs();

}  // namespace longhaul
