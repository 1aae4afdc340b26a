#include "longhaul/grpc/server/install.h"

#include "longhaul/grpc/server/targets.h"
#include "longhaul/runtime/install.h"

namespace longhaul {

bool install_servers() {
  static const bool installed = [] {
    install_runtime();
    install_session_factory(new_session_on_target);
    install_session_reset(reset_target);
    return true;
  }();
  return installed;
}

}  // namespace longhaul
