#include "longhaul/base/program_in_step.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

thread_local bool is_program_in_step = false;

}  // namespace

ProgramInStep::ProgramInStep() {
  is_program_in_step = true;
}

ProgramInStep::~ProgramInStep() {
  is_program_in_step = false;
}

void refuse_within_step(const char* what) {
  if (!is_program_in_step) return;
  throw FailedPreconditionError(fmt::format(
      "a step function {}, which would wait for the end of its own step. Do it between two steps: in the loop, after "
      "the run, or in a hook; in the loops of a Trainer, in Trainer::after_every()",
      what));
}

}  // namespace longhaul
