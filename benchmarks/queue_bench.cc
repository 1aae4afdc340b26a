// How fast do elements go through a queue, from one thread to another, beside the same tensors through a bounded
// std::deque under a mutex?
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "benchmarks/benchmarks.h"
#include "longhaul/longhaul.h"

namespace longhaul::bench {
namespace {

constexpr int kCapacity = 256;
constexpr int kElements = 100'000;
using Element = std::vector<Tensor>;

class BoundedDeque {
 public:
  void push(Element element) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      not_full_.wait(lock, [&] { return elements_.size() < kCapacity; });
      elements_.push_back(std::move(element));
    }
    not_empty_.notify_one();
  }
  Element pop() {
    Element element;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      not_empty_.wait(lock, [&] { return !elements_.empty(); });
      element = std::move(elements_.front());
      elements_.pop_front();
    }
    not_full_.notify_one();
    return element;
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_full_, not_empty_;
  std::deque<Element> elements_;
};

// A queue in a session, with a callable for each end.
struct OurQueue {
  explicit OurQueue(const Element& like) {
    const Scope root(graph);
    std::vector<DType> dtypes;
    QueueOptions options;
    std::vector<Output> inputs;
    for (const Tensor& component : like) {
      dtypes.push_back(component.dtype());
      options.shapes.push_back(component.shape());
      inputs.push_back(ops::placeholder(root, component.dtype(), component.shape()));
    }
    const FIFOQueue queue(root, kCapacity, dtypes, options);
    const Operation put = queue.enqueue(root, inputs);
    const std::vector<Output> taken = queue.dequeue(root);
    session = new_session("", graph);
    enqueue = session->make_callable(put, {inputs.begin(), inputs.end()});
    dequeue = session->make_callable({taken.begin(), taken.end()});
  }
  Graph graph;
  std::unique_ptr<Session> session;
  Callable enqueue, dequeue;
};

// What a loader has made: some elements of other bytes each.
std::vector<Element> images_with_labels() {
  std::vector<Element> elements;
  for (int64_t i = 0; i < 64; ++i) {
    Tensor image(kFloat, {784});
    for (float& pixel : image.mutable_flat<float>()) pixel = static_cast<float>(i);
    elements.push_back({image, Tensor::scalar(i)});
  }
  return elements;
}

std::vector<Element> scalars() {
  std::vector<Element> elements;
  for (int64_t i = 0; i < 64; ++i) elements.push_back({Tensor::scalar(i)});
  return elements;
}

// Elements per second from a thread that calls `put(i)` to this one, which calls `take()`.
template <typename Put, typename Take>
double elements_per_second(const Put& put, const Take& take) {
  return kElements / time_seconds([&] {
           std::thread producer([&] {
             for (size_t i = 0; i < kElements; ++i) put(i);
           });
           for (int i = 0; i < kElements; ++i) take();
           producer.join();
         });
}

Pair sample(const OurQueue& queue, const std::vector<Element>& elements) {
  BoundedDeque deque;
  Pair pair;
  pair.beside =
      elements_per_second([&](size_t i) { deque.push(elements[i % elements.size()]); }, [&] { return deque.pop(); });
  pair.ours = elements_per_second(
      [&](size_t i) {
        const Element& element = elements[i % elements.size()];
        if (element.size() == 1) {
          queue.enqueue(element[0]);
        } else {
          queue.enqueue(element[0], element[1]);
        }
      },
      [&] { return queue.dequeue(); });
  return pair;
}

Row row(const std::string& name, const std::string& what, std::vector<Element> elements) {
  struct Subject {
    explicit Subject(std::vector<Element> made) : elements(std::move(made)), queue(elements[0]) {}
    std::vector<Element> elements;
    OurQueue queue;
  };
  auto subject = std::make_shared<std::unique_ptr<Subject>>();  // made by the first sample
  auto made = std::make_shared<std::vector<Element>>(std::move(elements));
  return {.name = name,
          .what = what,
          .unit = "elements/s",
          .goal = 0.5,
          .sample =
              [subject, made] {
                if (!*subject) *subject = std::make_unique<Subject>(std::move(*made));
                return sample((*subject)->queue, (*subject)->elements);
              },
          .samples = 15};
}

}  // namespace

void add_queue_rows(std::vector<Row>& rows) {
  rows.push_back(row("queue/image_and_label", "elements from thread to thread, compared with a bounded std::deque",
                     images_with_labels()));
  rows.push_back(row("queue/scalar", "the same for a scalar", scalars()));
}

}  // namespace longhaul::bench
