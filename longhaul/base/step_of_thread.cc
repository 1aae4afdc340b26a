#include "longhaul/base/step_of_thread.h"

namespace longhaul {
namespace {

thread_local std::optional<int64_t> step_of_thread;

}  // namespace

StepOfThread::StepOfThread(int64_t number) {
  step_of_thread = number;
}

StepOfThread::~StepOfThread() {
  step_of_thread.reset();
}

std::optional<int64_t> StepOfThread::current() {
  return step_of_thread;
}

}  // namespace longhaul
