#pragma once

namespace longhaul {

// How many threads one operation uses: libtorch's own and OpenBLAS's, which does not follow libtorch's setting. For the
// whole process; at its best set once, before the first session. `threads` of 0 leaves things as they are.
void set_intra_op_threads(int threads);

}  // namespace longhaul
