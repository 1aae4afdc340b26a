#include "longhaul/runtime/threads.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/io/process/process_limits.h"

extern "C" void openblas_set_num_threads(int) __attribute__((weak));
extern "C" int openblas_get_parallel() __attribute__((weak));
extern "C" int openblas_get_num_threads() __attribute__((weak));

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
          .blas = openblas_get_num_threads != nullptr ? openblas_get_num_threads() : 1,
          .said_by = variable_that_says()};
}

constexpr int kMostThreads = 1024;  // or as many as there are processors

std::once_flag chosen, chosen_is_told;
ThreadChoice the_choice;             // made under `chosen`; empty: the program had set a number before
std::atomic<int> set_by_program{0};  // 0: none

void choose() {
  the_choice = choose_threads(facts_of_process());
  if (the_choice.threads > 0) set_threads(the_choice.threads);
}

void tell_choice() {
  if (!the_choice.why.empty()) log_info("{}", the_choice.why);
  if (!the_choice.warning.empty()) log_warning("{}", the_choice.warning);
}

void log_if_new(int threads) {
  static std::atomic<int> logged{0};
  if (logged.exchange(threads) == threads) return;
  log_info("each operation uses {} thread{} from now on, as set by the program", threads, threads == 1 ? "" : "s");
}

// Of two pools that wait actively for each other's processors. Whoever sets one variable rarely means both.
std::string warning_of_two_pools(const ThreadFacts& facts) {
  if (!facts.blas_has_own_threads || facts.libtorch < 2 || facts.blas < 2) return "";
  const std::string who = facts.said_by.empty() ? "as set by the program" : facts.said_by + " is set";
  const char* remedy = "set OPENBLAS_NUM_THREADS=1";
  if (facts.said_by == "OPENBLAS_NUM_THREADS") remedy = "unset it, or set it to 1";
  if (facts.said_by == "OMP_NUM_THREADS") remedy = "unset it, or set OPENBLAS_NUM_THREADS=1";
  return fmt::format(
      "libtorch has {} threads and OpenBLAS has {} of its own ({}). They compete, so steps may take 5 to 50 times as "
      "long. To use a single pool, {}",
      facts.libtorch, facts.blas, who, remedy);
}

}  // namespace

ThreadChoice choose_threads(const ThreadFacts& facts) {
  const auto text = [&](int threads) {
    return fmt::format("each operation uses {} thread{}; the process may use {} processor{}", threads,
                       threads == 1 ? "" : "s", facts.usable, facts.usable == 1 ? "" : "s");
  };
  const std::string warning = warning_of_two_pools(facts);
  if (!facts.said_by.empty()) return {0, fmt::format("{}: {} is set", text(facts.libtorch), facts.said_by), warning};
  if (facts.libtorch != facts.by_default) return {0, text(facts.libtorch) + ", as set in libtorch", warning};
  const int all = facts.by_default > 1 ? std::min(facts.by_default, facts.usable) : facts.usable;
  if (!facts.blas_has_own_threads || facts.usable == 1) return {all, text(all), ""};
  return {1,
          text(1) +
              ". OpenBLAS has threads of its own, and most training runs are slower if libtorch has more than one as "
              "well. To change this, call set_intra_op_threads()",
          ""};
}

void prepare_intra_op_threads(int threads) {
  if (threads <= 0) return std::call_once(chosen, choose);
  const int most = std::max(kMostThreads, usable_processors());
  if (threads > most) {
    throw InvalidArgumentError(fmt::format(
        "set_intra_op_threads() and SessionOptions::intra_op_parallelism_threads accept at most {} threads, not {}",
        most, threads));
  }
  std::call_once(chosen, [] {});
  set_threads(threads);
  set_by_program = threads;
}

void set_intra_op_threads(int threads) {
  prepare_intra_op_threads(threads);
  const int by_program = set_by_program;
  by_program > 0 ? log_if_new(by_program) : std::call_once(chosen_is_told, tell_choice);
}

}  // namespace longhaul
