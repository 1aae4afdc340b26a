#pragma once

namespace longhaul {

// Gives this thread a stack for its signal handlers (sigaltstack(2)), until it ends, unless it has one: so that a
// handler runs also when the thread's own stack has overflowed. Where there is no memory for it, it has none.
void use_alternate_stack();

}  // namespace longhaul
