#include <unordered_map>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul {
namespace {

class BuiltinCatalog : public OpCatalog {
 public:
  BuiltinCatalog() {
    using namespace builtin;
    for (const ResolverTable& table : {accumulator_ops(), array_ops(), function_ops(), image_ops(), input_ops(),
                                       lookup_ops(), optimizer_ops(), parsing_ops(), queue_ops(), random_ops(),
                                       reader_ops(), state_ops(), summary_ops(), sync_token_ops(), transfer_ops()}) {
      resolvers_.insert(table.begin(), table.end());
    }
  }

  std::optional<OpInfo> resolve(const OperationSpec& spec) const override {
    const auto it = resolvers_.find(spec.type);
    if (it == resolvers_.end()) return std::nullopt;
    return it->second(spec);
  }

 private:
  std::unordered_map<std::string, builtin::Resolve> resolvers_;
};

}  // namespace

const OpCatalog& builtin_op_catalog() {
  static const BuiltinCatalog* catalog = new BuiltinCatalog;
  return *catalog;
}

}  // namespace longhaul
