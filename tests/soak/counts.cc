#include "tests/soak/counts.h"

#include <fmt/format.h>

#include <cstdio>

namespace longhaul::soak {

void Counts::print_progress() const {
  fmt::print("soak: {} restarts, {} training runs, {} checkpoints damaged, nothing lost\n", restarts, trainings,
             damaged_checkpoints);
  std::fflush(stdout);
}

void Counts::print_table(Seconds lasted, uint64_t seed) const {
  int all = 0;
  fmt::print("\n| fault | times |\n| --- | ---: |\n");
  for (const auto& [kind, times] : faults) {
    fmt::print("| {} | {} |\n", kind, times);
    all += times;
  }
  fmt::print("\n| | |\n| --- | ---: |\n| faults tried | {} |\n| restarts | {} |\n| training runs completed | {} |\n",
             all, restarts, trainings);
  fmt::print("| runs ended with an error by an injected fault | {} |\n", failed_runs);
  fmt::print("| checkpoints damaged | {} |\n", damaged_checkpoints);
  fmt::print("| restarts from the checkpoint before the newest, after two crashes | {} |\n", skipped);
  fmt::print("| steps repeated | {} |\n| bytes lost | none |\n", steps_redone);
  fmt::print("\n{:.0f} s; to repeat the choices: --seed={}\n", lasted.count(), seed);
}

}  // namespace longhaul::soak
