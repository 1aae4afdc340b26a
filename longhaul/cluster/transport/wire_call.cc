#include "longhaul/cluster/transport/wire_call.h"

namespace longhaul {

WireCall::~WireCall() = default;

}  // namespace longhaul
