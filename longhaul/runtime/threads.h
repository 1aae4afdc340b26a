#pragma once

#include <string>

namespace longhaul {

// How many threads one operation uses: libtorch's own and OpenBLAS's, which does not follow libtorch's setting. For the
// whole process; at its best set once, before the first session.
//
// `threads` of 0: the library chooses, once, at the first session of the process, and the log says what:
//   - one thread, where OpenBLAS keeps threads of its own (Debian's default): beside libtorch's they make most
//     trainings slower;
//   - else as many as libtorch uses by default, one for each core, but no more than the process may use processors
//     (usable_processors). Where libtorch counts a single core, as in some virtual machines, each processor is one.
// It leaves alone what the program has set (at::set_num_threads with another number than libtorch's default), or the
// environment (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, MKL_NUM_THREADS), and warns where that gives several threads to
// both libtorch and such an OpenBLAS. The choice is the same at each start on a machine, and part of the record that
// goes with a checkpoint. A number that is not the one before is logged.
//
// libtorch's setting is OpenMP's: a parallel loop of the program's own that does not say how many threads it wants has
// as many as an operation, in the thread that made the first session and in each in which libtorch has computed. A
// loop's num_threads(n) clause holds for that loop alone; omp_set_num_threads(n) after the first session holds for
// libtorch's operations in that thread, too, which no record shows.
//
// InvalidArgumentError: more than 1024, and more than the process may use processors.
void set_intra_op_threads(int threads);

// What a choice follows from, so that tests need no other machine.
struct ThreadFacts {
  int libtorch = 1;                   // that libtorch uses now
  int by_default = 1;                 // that it uses where nobody says anything
  int usable = 1;                     // processors
  bool blas_has_own_threads = false;  // OpenBLAS with POSIX threads,
  int blas = 1;                       // and how many
  std::string said_by;                // a variable of the environment; empty: none
};
struct ThreadChoice {
  int threads = 0;      // 0: nothing is changed
  std::string why;      // for the log
  std::string warning;  // the same; empty: none
};
ThreadChoice choose_threads(const ThreadFacts& facts);

}  // namespace longhaul
