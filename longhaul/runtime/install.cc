#include "longhaul/runtime/install.h"

#include "longhaul/runtime/aten_catalog.h"
#include "longhaul/runtime/direct_session.h"

namespace longhaul {

bool install_runtime() {
  static const bool installed = [] {
    install_op_catalog(&aten_op_catalog());
    install_session_factory(new_direct_session);
    return true;
  }();
  return installed;
}

}  // namespace longhaul
