#pragma once

#include <string>

namespace longhaul {

// Sets the number of threads that compute one operation, both in libtorch and in OpenBLAS, which ignores libtorch's
// setting. The setting applies to the whole process; make it once, before the first session.
//
// With `threads` 0 the library chooses once, at the first session of the process, and logs the choice:
//   - one thread, if OpenBLAS has its own threads (Debian's default): together with libtorch's they make most training
//     slower;
//   - else libtorch's default, one per core, but no more than the processors available to the process
//     (usable_processors). If libtorch counts a single core, as in some virtual machines, each processor counts as a
//     core.
// Settings by the program (at::set_num_threads with a number other than libtorch's default) or by the environment
// (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS) are left alone, with a warning if they give several threads
// to both libtorch and such an OpenBLAS. The choice is the same at each start on a machine, and part of the environment
// recorded with a checkpoint. A change of the number is logged.
//
// libtorch's setting is also OpenMP's. The program's own parallel loops without a thread count therefore use as many
// threads as an operation does, in the thread that made the first session and in every thread in which libtorch has
// computed. A loop's num_threads(n) clause affects only that loop; omp_set_num_threads(n) after the first session also
// affects libtorch's operations in that thread, and is not recorded.
//
// InvalidArgumentError: more than 1024, and more than the processors available to the process.
void set_intra_op_threads(int threads);

// The same, but logs nothing. For a server, whose task may never compute a step of a training run: what was left out is
// logged by the next call of set_intra_op_threads(0).
void prepare_intra_op_threads(int threads);

// The facts that the choice depends on. A parameter, so that tests can pretend to run on another machine.
struct ThreadFacts {
  int libtorch = 1;                   // the number that libtorch uses now
  int by_default = 1;                 // the number that it uses by default
  int usable = 1;                     // processors
  bool blas_has_own_threads = false;  // OpenBLAS is built with POSIX threads
  int blas = 1;                       // the number that OpenBLAS uses now
  std::string said_by;                // the environment variable that sets it; empty: none
};
struct ThreadChoice {
  int threads = 0;      // 0: no change
  std::string why;      // for the log
  std::string warning;  // for the log; empty: none
};
ThreadChoice choose_threads(const ThreadFacts& facts);

}  // namespace longhaul
