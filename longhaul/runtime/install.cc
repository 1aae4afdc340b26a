#include "longhaul/runtime/install.h"

#include "longhaul/runtime/aten/aten_catalog.h"
#include "longhaul/runtime/direct_session.h"
#include "longhaul/runtime/torch_environment.h"

namespace longhaul {

bool install_runtime() {
  static const bool installed = [] {
    install_op_catalog(&aten_op_catalog());
    install_session_factory(new_direct_session);
    install_session_reset(reset_direct_sessions);
    install_environment(torch_environment);
    return true;
  }();
  return installed;
}

}  // namespace longhaul
