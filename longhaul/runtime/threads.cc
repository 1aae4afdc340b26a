#include "longhaul/runtime/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/io/process_limits.h"

extern "C" void openblas_set_num_threads(int) __attribute__((weak));
extern "C" int openblas_get_parallel() __attribute__((weak));

namespace longhaul {
namespace {

void set_threads(int threads) {
  if (at::get_num_threads() != threads) at::set_num_threads(threads);
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(threads);
}

// A libtorch with MKL within calls no OpenBLAS, also where one is linked.
bool blas_has_own_threads() {
  constexpr int kPosixThreads = 1;
  return openblas_get_parallel != nullptr && openblas_get_parallel() == kPosixThreads && !at::hasMKL();
}

std::string variable_that_says() {
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return name;
  }
  return "";
}

ThreadFacts facts_of_process() {
  return {.libtorch = at::get_num_threads(),
          .by_default = at::intraop_default_num_threads(),
          .usable = usable_processors(),
          .blas_has_own_threads = blas_has_own_threads(),
          .said_by = variable_that_says()};
}

constexpr int kMostThreads = 1024;  // or as many as there are processors

std::once_flag chosen;

void choose() {
  const ThreadChoice choice = choose_threads(facts_of_process());
  if (choice.threads > 0) set_threads(choice.threads);
  log_info("{}", choice.why);
}

}  // namespace

ThreadChoice choose_threads(const ThreadFacts& facts) {
  const auto text = [&](int threads) {
    return fmt::format("an operation uses {} thread{}, the process may use {} processor{}", threads,
                       threads == 1 ? "" : "s", facts.usable, facts.usable == 1 ? "" : "s");
  };
  if (!facts.said_by.empty()) return {0, fmt::format("{}: {} is set", text(facts.libtorch), facts.said_by)};
  if (facts.libtorch != facts.by_default) return {0, text(facts.libtorch) + ", as libtorch is set"};
  const int all = facts.by_default > 1 ? std::min(facts.by_default, facts.usable) : facts.usable;
  if (!facts.blas_has_own_threads || facts.usable == 1) return {all, text(all)};
  return {1, text(1) +
                 ": OpenBLAS has threads of its own, and with libtorch's beside them most trainings are slower. "
                 "set_intra_op_threads() sets another number"};
}

void set_intra_op_threads(int threads) {
  if (threads <= 0) return std::call_once(chosen, choose);
  const int most = std::max(kMostThreads, usable_processors());
  if (threads > most) {
    throw InvalidArgumentError(fmt::format(
        "set_intra_op_threads() and SessionOptions::intra_op_parallelism_threads take up to {} threads, not {}", most,
        threads));
  }
  std::call_once(chosen, [] {});
  set_threads(threads);
}

}  // namespace longhaul
