#include "longhaul/train/reporting/logged_tensor.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {

Output output_of(const Graph& graph, const Fetch& fetch, std::string_view who) {
  const Fetch::Target target = fetch.resolve(graph);
  if (!target.is_operation()) return target.output();
  throw InvalidArgumentError(fmt::format("{}: {} is an operation and has no value; name its output, as in \"{}:0\"",
                                         who, target.op.name(), target.op.name()));
}

std::string text_of(const Tensor& value) {
  if (value.num_elements() != 1) return value.to_string();
  if (value.dtype() == kString) return value.item<std::string>();
  if (is_floating(value.dtype())) return fmt::format("{:g}", value.item<double>());
  return is_integer(value.dtype()) ? fmt::format("{}", value.item<int64_t>()) : value.to_string();
}

}  // namespace longhaul
