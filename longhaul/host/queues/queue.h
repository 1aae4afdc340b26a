#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/mutex.h"
#include "longhaul/host/queues/element_store.h"
#include "longhaul/host/queues/queue_spec.h"
#include "longhaul/host/resource.h"

namespace longhaul {

// A tensor for each component.
using QueueElement = std::vector<Tensor>;

// A bounded queue of tuples of tensors.
//
//   open --close--> closed: pending enqueues continue (or are cancelled), and remaining elements can be taken
//
// Any thread may call any method. Waiting calls are served in order of arrival, by the thread that makes it possible.
// All waits end with `limits`: CancelledError with its cancellation's reason, DeadlineExceededError. A failed call
// leaves the queue unchanged, except for the elements that an enqueue_many had already added.
//
// Invalid values: InvalidArgumentError "Wrong number of components in tuple", "Type mismatch in tuple component",
// "Shape mismatch in tuple component". Tensors share their bytes with the caller's. If memory runs out for a waiting
// call, only that call fails, whichever thread serves it.
class Queue final : public Resource {
 public:
  Queue(QueueSpec spec, std::unique_ptr<ElementStore> store);
  ~Queue() override = default;

  const std::string& name() const { return spec_.name; }
  const QueueSignature& signature() const { return spec_.signature; }
  // InvalidArgumentError: the handle declares elements of other dtypes or shapes.
  void check_handle(const Operation& handle) const override { check_.check_handle(handle); }

  // CancelledError: the queue is closed ("... is closed."), or was closed with cancellation ("Enqueue operation was
  // cancelled").
  void enqueue(QueueElement element, const WaitLimits& limits = {}) EXCLUDES(mutex_);
  // Adds an element for each row of the components. Rows that pass through the queue together are dequeued without a
  // copy if they are exactly a batch that was enqueued.
  void enqueue_many(std::span<const Tensor> components, const WaitLimits& limits = {}) EXCLUDES(mutex_);

  // Succeed at once or not at all: only if no call is waiting, and there is space or an element. False: nothing has
  // changed.
  bool try_enqueue(QueueElement& element) EXCLUDES(mutex_);
  bool try_dequeue(QueueElement* element) EXCLUDES(mutex_);

  // OutOfRangeError: "... is closed and has insufficient elements (requested N, current size M)".
  QueueElement dequeue(const WaitLimits& limits = {}) EXCLUDES(mutex_);
  // Stacked: a tensor for each component. InvalidArgumentError: the shapes are not declared, or n < 0.
  std::vector<Tensor> dequeue_many(int64_t n, const WaitLimits& limits = {}) EXCLUDES(mutex_);
  // The same, but if the queue is closed, fewer will do (at least one).
  std::vector<Tensor> dequeue_up_to(int64_t n, const WaitLimits& limits = {}) EXCLUDES(mutex_);

  void close(bool cancel_pending_enqueues) EXCLUDES(mutex_);  // may be called again
  void drop(const std::string& why) override EXCLUDES(mutex_);
  bool is_closed() const EXCLUDES(mutex_);
  size_t size() const EXCLUDES(mutex_);     // without pending enqueues
  size_t waiting() const EXCLUDES(mutex_);  // waiting calls

 private:
  // A waiting call, on its thread's stack. Guarded by the queue's mutex.
  struct Pending {
    CondVar changed;
    bool done = false;
    bool cancelled = false;  // the work that it belongs to
    std::exception_ptr error;
  };
  struct PendingEnqueue : Pending {
    StoredElement element(size_t i) {
      return batch ? StoredElement(batch, static_cast<int64_t>(i)) : StoredElement(std::move(single));
    }
    StoredElement::Batch batch;  // nullptr: a single element
    QueueElement single;
    size_t count = 1, next = 0;
  };
  struct PendingDequeue : Pending {
    size_t wanted = 0;
    bool fewer_will_do = false;
    std::vector<StoredElement> taken;
  };

  std::vector<Tensor> dequeue_stacked(int64_t n, bool fewer_will_do, const WaitLimits& limits) EXCLUDES(mutex_);
  std::vector<StoredElement> take(int64_t n, bool fewer_will_do, const WaitLimits& limits) EXCLUDES(mutex_);

  template <typename PendingCall>
  void wait(PendingCall& pending, const WaitLimits& limits) EXCLUDES(mutex_);
  void await(Pending& pending, const WaitLimits& limits) REQUIRES(mutex_);  // until it is done, cancelled or late
  void begin(PendingEnqueue& pending) REQUIRES(mutex_);
  void begin(PendingDequeue& pending) REQUIRES(mutex_);
  void withdraw(PendingEnqueue& pending) REQUIRES(mutex_);
  void withdraw(PendingDequeue& pending) REQUIRES(mutex_);

  bool has_space() const REQUIRES(mutex_);
  bool has_element() const REQUIRES(mutex_);
  void serve() REQUIRES(mutex_);
  bool serve_enqueues() REQUIRES(mutex_);
  bool serve_dequeues() REQUIRES(mutex_);
  void end_of_elements(PendingDequeue& pending) REQUIRES(mutex_);
  std::exception_ptr error_of_end(const std::exception_ptr& if_closed) const REQUIRES(mutex_);
  static void finish(Pending& pending, std::exception_ptr error = nullptr);

  const QueueSpec spec_;
  const std::unique_ptr<ElementStore> store_;  // its elements are guarded by mutex_
  const ElementCheck check_;
  mutable Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::string why_dropped_ GUARDED_BY(mutex_);               // empty: it was not
  std::deque<PendingEnqueue*> enqueues_ GUARDED_BY(mutex_);  // in order of arrival
  std::deque<PendingDequeue*> dequeues_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
