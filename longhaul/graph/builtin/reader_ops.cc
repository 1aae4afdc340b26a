#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {

ResolverTable reader_ops() {
  return {};
}

}  // namespace longhaul::builtin
