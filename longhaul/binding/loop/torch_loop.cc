#include "longhaul/binding/loop/torch_loop.h"

#include "longhaul/binding/bound_torch.h"
#include "longhaul/ops/program_loop.h"
#include "longhaul/session/capabilities.h"
#include "longhaul/session/program_steps.h"

namespace longhaul {

TorchLoop::TorchLoop(TorchTraining training, std::shared_ptr<BoundTorch> bound)
    : training_(std::move(training)), bound_(std::move(bound)) {
  training_.train_op.graph().add_to_collection(ops::kProgramLoop, training_.train_op);
}

TorchLoop::TorchLoop(TorchLoop&&) noexcept = default;
TorchLoop::~TorchLoop() = default;

void TorchLoop::attach(Session& session) {
  steps_ = &required_capability(session.capabilities().program_steps,
                                "a program that makes its steps in its own loop needs a session of its own process "
                                "(the target \"\"). On servers, pass torch_training() a step function");
  count_ = std::make_unique<Callable>(session.make_callable(training_.train_op));
  step_ = session.run(training_.global_step).item<int64_t>();
}

void TorchLoop::detach() {
  cancel();
  restored_.forget();
  count_.reset();
  steps_ = nullptr;
}

void TorchLoop::begin() {
  steps_->begin_step();
  try {
    bound_->begin_in_loop(step_);
  } catch (...) {
    steps_->abandon_step();
    throw;
  }
  is_in_step_ = true;
}

bool TorchLoop::changed() const {
  return bound_->changed_in_loop();
}

bool TorchLoop::changed_anything() const {
  return bound_->changed_anything_in_loop();
}

void TorchLoop::made(const at::Tensor& loss) {
  bound_->made_in_loop(loss);
  (*count_)();
  is_in_step_ = false;
  ++step_;
}

void TorchLoop::abandon(const std::string& reason) {
  if (!is_in_step_) return;
  is_in_step_ = false;
  bound_->leave_in_loop(reason);
  steps_->abandon_step();
}

void TorchLoop::cancel() {
  if (!is_in_step_) return;
  is_in_step_ = false;
  bound_->cancel_in_loop();
  steps_->abandon_step();
}

void TorchLoop::keep(const Scope& scope, const KeptValues& values) {
  bound_->add_kept(scope.within("kept"), values);
}

void TorchLoop::keep_restored() {
  restored_ = bound_->restored();
  restored_.keep();
}

void TorchLoop::put_back_restored(bool with_weights) {
  restored_.put_back(with_weights);
}

void TorchLoop::forget_restored() {
  restored_.forget();
}

std::map<std::string, std::string> TorchLoop::short_values() const {
  return bound_->short_values();
}

void TorchLoop::set_short_values(const std::map<std::string, std::string>& bytes) {
  bound_->set_short_values(bytes);
}

}  // namespace longhaul
