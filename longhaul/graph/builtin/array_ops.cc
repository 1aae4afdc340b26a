#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable array_ops() {
  return {};
}

}  // namespace longhaul::builtin
