#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable queue_ops() {
  return {};
}

}  // namespace longhaul::builtin
