#include "longhaul/runtime/plan/prepared.h"

#include <atomic>

#include "longhaul/runtime/plan/tracer.h"

namespace longhaul {
namespace {

uint64_t next_step() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Prepared::Prepared(std::shared_ptr<Plan> plan, std::span<const Tensor* const> feeds, const PartRun& how)
    : plan_(std::move(plan)), how_(how), step_(next_step()) {
  if (how_.trace != nullptr) tracer_ = std::make_unique<Tracer>(*how_.trace);
  frame_ = plan_->begin(feeds, how_, is_step());
  try {
    plan_->compute_to_write(feeds, *frame_, how_, tracer_.get());
  } catch (...) {
    abort();  // no destructor does it for what was not made
    throw;
  }
}

Prepared::Prepared(Prepared&&) noexcept = default;

Prepared::~Prepared() {
  abort();
}

void Prepared::need_state(bool written) const {
  if (frame_ && written_ == written) return;
  throw FailedPreconditionError(frame_ ? "a prepared run was written twice, or finished before it was written"
                                       : "a prepared run was used after it was finished, aborted or had failed");
}

void Prepared::let_in(const std::string& door) const {
  plan_->let_in(door, step_);
}

void Prepared::write() {
  need_state(/*written=*/false);
  try {
    if (changes_state()) plan_->write(*frame_, step_, tracer_.get());
  } catch (...) {
    abort();
    throw;
  }
  written_ = true;
}

void Prepared::finish(std::vector<Tensor>* results) {
  need_state(/*written=*/true);
  try {
    plan_->finish(*frame_, how_.deadline, tracer_.get(), results);
  } catch (...) {
    abort();
    throw;
  }
  abort();
}

void Prepared::abort() noexcept {
  if (frame_) plan_->end(std::move(frame_), /*gives_draws_back=*/!written_ && is_step());
}

}  // namespace longhaul
