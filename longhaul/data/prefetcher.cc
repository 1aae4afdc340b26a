#include "longhaul/data/prefetcher.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/waiting.h"

namespace longhaul {

Prefetcher::Prefetcher(PrefetchWork work, int num_threads, int ahead, Seconds timeout)
    : work_(std::move(work)), num_threads_(num_threads), ahead_(static_cast<size_t>(ahead)), timeout_(timeout) {}

Prefetcher::~Prefetcher() {
  stop();
  for (NamedThread& thread : threads_) thread.join();
}

void Prefetcher::start_threads() {
  while (static_cast<int>(threads_.size()) < num_threads_) {
    threads_.emplace_back(fmt::format("lh-data-{}", threads_.size()), [this] { prepare(); });
  }
}

Batch Prefetcher::at(int64_t position) {
  if (go_to(position)) space_.notify_all();
  start_threads();
  const std::shared_ptr<Slot> slot = take_first();
  space_.notify_all();  // several threads may wait (see CondVar::wait())
  if (slot->error) std::rethrow_exception(slot->error);
  return std::move(slot->batch);
}

// A position that was restored or assigned is another than the one behind the last batch taken. Where nobody makes
// anything yet, all threads are told again.
bool Prefetcher::go_to(int64_t position) {
  const MutexLock lock(mutex_);
  bool moved = false;
  for (; !slots_.empty() && slots_.front()->position != position; moved = true) drop_first();
  if (!slots_.empty()) return moved;
  next_ = position;
  return true;
}

void Prefetcher::drop_first() {
  slots_.front()->abandoned = true;
  slots_.pop_front();
}

std::shared_ptr<Prefetcher::Slot> Prefetcher::take_first() {
  const Seconds deadline = Clock::real().now() + timeout_;
  const MutexLock lock(mutex_);
  std::optional<Waiting> waiting;
  while (slots_.empty() || !slots_.front()->ready) {
    if (!waiting) waiting.emplace("a batch of the data loader");
    if (stopped_) throw CancelledError("data loader: it was stopped");
    if (timeout_.count() <= 0) {
      changed_.wait(mutex_);  // wait: prepare() and stop() end it
      continue;
    }
    const Seconds left = deadline - Clock::real().now();
    if (left.count() <= 0) {
      throw DeadlineExceededError(
          fmt::format("data loader: the batch was not ready after {} s, its timeout", timeout_.count()));
    }
    changed_.wait_for(mutex_, left);  // wait: the loader's timeout
  }
  std::shared_ptr<Slot> slot = std::move(slots_.front());
  slots_.pop_front();
  return slot;
}

void Prefetcher::prepare() {
  while (const std::shared_ptr<Slot> slot = claim()) {
    fill(*slot);
    {
      const MutexLock lock(mutex_);
      slot->ready = true;
    }
    changed_.notify_all();
  }
}

std::shared_ptr<Prefetcher::Slot> Prefetcher::claim() {
  const MutexLock lock(mutex_);
  while (!stopped_) {
    if (next_ && slots_.size() < ahead_ && work_.exists(*next_)) {
      slots_.push_back(std::make_shared<Slot>(*next_));
      *next_ += work_.stride;
      return slots_.back();
    }
    space_.wait(mutex_);  // wait: at() and stop() end it
  }
  return nullptr;
}

void Prefetcher::fill(Slot& slot) {
  try {
    slot.batch = work_.make(slot.position, slot.abandoned);
  } catch (...) {
    slot.error = std::current_exception();
  }
}

void Prefetcher::stop() {
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    while (!slots_.empty()) drop_first();
  }
  changed_.notify_all();
  space_.notify_all();
}

}  // namespace longhaul
