#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable image_ops() {
  return {};
}

}  // namespace longhaul::builtin
