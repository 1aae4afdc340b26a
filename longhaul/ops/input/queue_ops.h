#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/graph/queue_signature.h"
#include "longhaul/graph/scope.h"

namespace longhaul {

struct QueueOptions {
  // One for each component. Empty: not declared; elements may then differ in shape, and dequeue_many is not available.
  std::vector<Shape> shapes{};
  std::vector<std::string> names{};  // of the components, for ordered() and named()
  std::string shared_name{};         // under which other graphs on the same server find it; empty: its own name
  std::string name{};                // of the handle; empty: "fifo_queue", ...
};

// A queue of tensor tuples. The object is a handle and may be copied; the elements live in the session.
//
//   FIFOQueue queue(scope, 100, {kFloat, kInt64}, {.shapes = {{784}, {}}});
//   const Operation put = queue.enqueue(scope, {image, label});
//   const std::vector<Output> batch = queue.dequeue_many(scope, 32);   // float[32,784], int64[32]
//
// Enqueues wait while the queue is full; dequeues wait while it has too few elements; both are served in order of
// arrival. A wait ends when the queue is closed, when the session is closed (CancelledError "Session::Close") or at the
// run's timeout (DeadlineExceededError). Functions that add operations throw InvalidArgumentError if the components do
// not fit.
class QueueBase {
 public:
  QueueBase() = default;
  // For a queue that is in the graph already. InvalidArgumentError: `handle` is not a queue.
  explicit QueueBase(Operation handle, std::vector<std::string> names = {});

  const std::string& name() const { return handle_.name(); }  // with scopes
  Output handle() const { return handle_.output(); }
  Graph& graph() const { return handle_.graph(); }
  const std::vector<DType>& dtypes() const { return signature_.dtypes; }
  const std::vector<Shape>& shapes() const { return signature_.shapes; }
  const std::vector<std::string>& names() const { return names_; }

  // Enqueues one element. CancelledError when run: the queue is closed, or was closed with cancel_pending_enqueues
  // during the wait.
  Operation enqueue(const Scope& scope, const std::vector<Output>& components, std::string_view name = "") const;
  // Enqueues many elements, one for each row of the components. A run that fails may have enqueued some of them.
  Operation enqueue_many(const Scope& scope, const std::vector<Output>& components, std::string_view name = "") const;

  // Dequeues one element: returns an output for each component. OutOfRangeError when run: the queue is closed and
  // empty.
  std::vector<Output> dequeue(const Scope& scope, std::string_view name = "") const;
  // Dequeues `n` elements, stacked. OutOfRangeError when run: the queue is closed and has fewer; these stay.
  // InvalidArgumentError: the shapes are not declared.
  std::vector<Output> dequeue_many(const Scope& scope, int32_t n, std::string_view name = "") const;
  std::vector<Output> dequeue_many(const Scope& scope, const Output& n, std::string_view name = "") const;
  // The same, but dequeues fewer (at least one) if the queue is closed and has no more.
  std::vector<Output> dequeue_up_to(const Scope& scope, int32_t n, std::string_view name = "") const;
  std::vector<Output> dequeue_up_to(const Scope& scope, const Output& n, std::string_view name = "") const;

  // Closes the queue: later runs cannot enqueue any more. Enqueues that are waiting continue, unless cancelled.
  Operation close(const Scope& scope, bool cancel_pending_enqueues = false, std::string_view name = "") const;
  Output is_closed(const Scope& scope, std::string_view name = "") const;
  Output size(const Scope& scope, std::string_view name = "") const;  // int32

  // For queues with named components: convert components to the queue's order, and to a map by name.
  // InvalidArgumentError: the names are not the queue's.
  std::vector<Output> ordered(const std::map<std::string, Output>& components) const;
  std::map<std::string, Output> named(const std::vector<Output>& components) const;

 protected:
  QueueBase(const Scope& scope, const std::string& type, const std::string& default_name,
            const std::vector<DType>& dtypes, int32_t capacity, const QueueOptions& options, Attrs more = {});

 private:
  std::string own_name() const;
  Operation add_enqueue(const Scope& scope, const std::string& type, const std::vector<Output>& components,
                        const std::string& name) const;
  std::vector<Output> add_dequeue(const Scope& scope, const std::string& type, std::vector<Output> inputs,
                                  const std::string& name) const;

  Operation handle_;
  QueueSignature signature_;
  std::vector<std::string> names_;
};

// A first-in, first-out queue. `capacity` -1: unlimited. Shapes must be fully defined.
class FIFOQueue : public QueueBase {
 public:
  FIFOQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes, const QueueOptions& options = {});
};

// The same for elements that differ in size: shapes may contain -1, and dequeue_many pads with zeros (empty strings) to
// the largest size in the batch.
class PaddingFIFOQueue : public QueueBase {
 public:
  PaddingFIFOQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes,
                   const QueueOptions& options);  // shapes are required
};

// A queue whose dequeues return random elements. It keeps `min_after_dequeue` elements to choose from until it is
// closed. The order is the same in each session if `seed` or the graph's seed is set.
class RandomShuffleQueue : public QueueBase {
 public:
  RandomShuffleQueue(const Scope& scope, int32_t capacity, int32_t min_after_dequeue, const std::vector<DType>& dtypes,
                     const QueueOptions& options = {}, std::optional<int64_t> seed = std::nullopt);
};

// A queue that returns the element with the lowest priority value first and, among equal ones, the oldest. The
// components are the priority, a scalar int64, then those of `dtypes`.
class PriorityQueue : public QueueBase {
 public:
  PriorityQueue(const Scope& scope, int32_t capacity, const std::vector<DType>& dtypes,
                const QueueOptions& options = {});
};

}  // namespace longhaul
