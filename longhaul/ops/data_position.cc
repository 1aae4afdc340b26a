#include "longhaul/ops/data_position.h"

namespace longhaul::ops {

DataPosition data_position(const Scope& scope, const DataPositionOptions& options, std::string_view name) {
  const Variable position = variable(scope, name, Tensor::scalar<int64_t>(0), {.trainable = false});
  const Scope inner = scope.within(name);
  const Output indices = inner
                             .add("ExampleOrder", "indices", {position},
                                  {{"num_examples", options.num_examples},
                                   {"batch_size", options.batch_size},
                                   {"num_epochs", options.num_epochs},
                                   {"shuffle", options.shuffle},
                                   {"seed", options.seed}})
                             .output();
  const Output taken = constant(inner, options.batch_size, "batch_size");
  return {position, indices, assign_add(inner, position, taken, "advance").op()};
}

}  // namespace longhaul::ops
