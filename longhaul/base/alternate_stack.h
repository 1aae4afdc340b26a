#pragma once

namespace longhaul {

// Gives this thread a stack for its signal handlers (sigaltstack(2)) until it ends, unless it already has one, so that
// a handler runs even when the thread's own stack has overflowed. If there is no memory for it, the thread goes
// without.
void use_alternate_stack();

}  // namespace longhaul
