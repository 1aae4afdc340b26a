#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable parsing_ops() {
  return {};
}

}  // namespace longhaul::builtin
