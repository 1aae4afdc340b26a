#include "longhaul/runtime/plan/index_check.h"

#include <algorithm>
#include <string_view>

#include "longhaul/runtime/aten/index_errors.h"
#include "longhaul/runtime/plan/loss_shapes.h"

namespace longhaul {
namespace {

// By the names of their arguments.
struct LookupType {
  std::string_view type, table, indices;
};
constexpr LookupType kLookups[] = {
    {"aten::embedding", "weight", "indices"},
    {"aten::index_select", "self", "index"},
    {"aten::nll_loss_forward", "self", "target"},
};

const AtenArgument* find_argument(const AtenCall& call, std::string_view name) {
  const auto index = call.op.schema().argumentIndexWithName(std::string(name));
  return index ? &call.arguments[static_cast<size_t>(*index)] : nullptr;
}

std::optional<int64_t> number(const AtenCall& call, std::string_view name) {
  const AtenArgument* argument = find_argument(call, name);
  if (argument == nullptr || !argument->constant.isInt()) return std::nullopt;
  return argument->constant.toInt();
}

}  // namespace

void IndexCheck::run(Frame& frame, SessionState&) const {
  Lookup lookup{frame.slots[static_cast<size_t>(parts_.table)].tensor,
                frame.slots[static_cast<size_t>(parts_.indices)].tensor, parts_.dim, parts_.ignored, parts_.is_loss};
  if (lookup.table.dim() == 0) return;
  if (parts_.is_loss) lookup.dim = std::min<int64_t>(1, lookup.table.dim() - 1);
  if (lookup.dim < 0) lookup.dim += lookup.table.dim();
  if (lookup.dim < 0 || lookup.dim >= lookup.table.dim()) return;  // libtorch tells that better
  const std::string text = index_error_text(lookup);
  if (!text.empty()) throw InvalidArgumentError(operation_error_text(op(), text));
}

std::unique_ptr<IndexCheck> index_check_of(const Operation& op, const AtenCall& call, const std::vector<int>& inputs,
                                           const SlotTable& slots) {
  const auto lookup = std::find_if(std::begin(kLookups), std::end(kLookups),
                                   [&](const LookupType& known) { return known.type == op.type(); });
  if (lookup == std::end(kLookups)) return nullptr;
  const AtenArgument* table = find_argument(call, lookup->table);
  const AtenArgument* indices = find_argument(call, lookup->indices);
  for (const AtenArgument* argument : {table, indices}) {
    if (argument == nullptr || argument->source != AtenArgument::Source::kTensor) return nullptr;
  }
  const int on_host = slots.find(op.inputs()[static_cast<size_t>(indices->first_input)]);
  if (on_host < 0 || !slots.device_of(on_host).is_cpu()) return nullptr;
  return std::make_unique<IndexCheck>(op,
                                      IndexCheck::Parts{.table = inputs[static_cast<size_t>(table->first_input)],
                                                        .indices = on_host,
                                                        .is_loss = lookup->indices == "target",
                                                        .dim = number(call, "dim").value_or(0),
                                                        .ignored = number(call, "ignore_index")},
                                      slots.size());
}

}  // namespace longhaul
