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

Prepared::Prepared(std::shared_ptr<Plan> plan, const PartRun& how)
    : plan_(std::move(plan)), how_(how), step_(next_step()) {
  if (how_.trace != nullptr) tracer_ = std::make_unique<Tracer>(*how_.trace);
  frame_ = plan_->take_frame();
  Cancellation* const session = &plan_->session_->cancellation();
  frame_->limits = {how_.deadline, how_.cancellation != nullptr ? how_.cancellation : session};
  frame_->exchange = how_.exchange;
  plan_->take_draws(*frame_, is_step());
}

Prepared::Prepared(Prepared&&) noexcept = default;

Prepared::~Prepared() {
  abort();
}

// If it throws, the destructor gives back what was taken.
void Prepared::compute(std::span<const Tensor* const> feeds) {
  frame_->limits.cancellation->check();
  plan_->bind_feeds(feeds, *frame_);
  plan_->compute_to_write(*frame_, how_, tracer_.get());
}

void Prepared::need_state(bool written) const {
  if (frame_ && written_ == written) return;
  throw FailedPreconditionError(frame_ ? "a prepared run was written twice, or finished before it was written"
                                       : "a prepared run was used after it was finished, aborted or had failed");
}

void Prepared::let_in(const std::string& door) const {
  plan_->session_->gate().let_in(door, step_);
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
    plan_->compute_rest(*frame_, how_.deadline, tracer_.get());
    plan_->collect(*frame_, results);
  } catch (...) {
    abort();
    throw;
  }
  abort();
}

void Prepared::abort() noexcept {
  if (!frame_) return;
  if (!written_) plan_->give_draws_back(*frame_, is_step());
  plan_->clear_slots(*frame_);
  frame_->exchange = nullptr;
  plan_->give_back(std::move(frame_));
}

}  // namespace longhaul
