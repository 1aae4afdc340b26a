#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable lookup_ops() {
  return {};
}

}  // namespace longhaul::builtin
