#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/operation.h"

namespace longhaul {

// An operation that is about to be added to a graph.
struct OperationSpec {
  std::string type{};
  std::string name{};  // full, with scopes; made unique by a suffix
  std::vector<Output> inputs{};
  Attrs attrs{};
  std::vector<Operation> control_inputs{};
  std::string device{};
  // Instead of `device` it gets the one of the variables and resources that it takes by reference, if they share one.
  bool follows_references = false;
};

// The properties and results of an operation with that spec.
struct OpInfo {
  struct Result {
    DType dtype;
    Shape shape;
  };
  std::vector<Result> outputs;
  uint32_t traits = kPure;
  int ref_inputs = 0;
};

// The types of operations, with their inputs and results. Catalogs are never destroyed and may be used from any thread.
class OpCatalog {
 public:
  virtual ~OpCatalog() = default;

  // nullopt: the type is not in this catalog. InvalidArgumentError: the catalog has the type, but it cannot be called
  // with these arguments; the message has the signature and the arguments.
  virtual std::optional<OpInfo> resolve(const OperationSpec& spec) const = 0;
};

// The operations with TensorFlow's names, which are resolved without libtorch: state, control, summaries, save and
// restore.
const OpCatalog& builtin_op_catalog();

// Adds a catalog for all graphs of the process; longhaul.h does so for libtorch's operators. Installing a catalog twice
// has no further effect.
void install_op_catalog(const OpCatalog* catalog);

// Asks the built-in catalog, then the installed ones. NotFoundError: no catalog has the type.
OpInfo resolve_operation(const OperationSpec& spec);

// A hint for messages about types that no catalog has. If no catalog is installed: "; libtorch's operators come with
// #include <longhaul/longhaul.h>", else empty.
std::string hint_of_missing_catalogs();

}  // namespace longhaul
