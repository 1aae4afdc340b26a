#include "longhaul/host/queues/element_store.h"

#include <algorithm>
#include <random>

#include "longhaul/host/queues/seed.h"

namespace longhaul {
namespace {

// A ring: in a queue that runs for days no element costs memory of its own.
class FifoStore : public ElementStore {
 public:
  void put(StoredElement element) override {
    if (size_ == ring_.size()) grow();
    ring_[place(size_++)] = std::move(element);
  }
  StoredElement take() override {
    StoredElement element = std::move(ring_[first_]);
    first_ = place(1);
    --size_;
    return element;
  }
  void put_back(std::vector<StoredElement> taken) override {
    for (auto element = taken.rbegin(); element != taken.rend(); ++element) {
      if (size_ == ring_.size()) grow();
      first_ = place(ring_.size() - 1);
      ring_[first_] = std::move(*element);
      ++size_;
    }
  }
  size_t size() const override { return size_; }

 private:
  size_t place(size_t i) const { return (first_ + i) & (ring_.size() - 1); }
  void grow() {
    std::vector<StoredElement> larger(std::max<size_t>(16, 2 * ring_.size()));
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move(ring_[place(i)]);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<StoredElement> ring_;  // its size is a power of two
  size_t first_ = 0, size_ = 0;
};

std::mt19937_64 seeded(uint64_t seed, uint64_t seed2) {
  if (seed == 0 && seed2 == 0) {
    seed = fresh_seed();
  }
  std::seed_seq sequence{seed, seed >> 32, seed2, seed2 >> 32};
  return std::mt19937_64(sequence);
}

class ShuffleStore : public ElementStore {
 public:
  ShuffleStore(uint64_t seed, uint64_t seed2) : random_(seeded(seed, seed2)) {}
  void put(StoredElement element) override { elements_.push_back(std::move(element)); }
  StoredElement take() override {
    // Not a distribution of the standard library: these differ between libraries.
    std::swap(elements_[random_() % elements_.size()], elements_.back());
    StoredElement element = std::move(elements_.back());
    elements_.pop_back();
    return element;
  }
  void put_back(std::vector<StoredElement> taken) override {
    for (StoredElement& element : taken) put(std::move(element));
  }
  size_t size() const override { return elements_.size(); }

 private:
  std::vector<StoredElement> elements_;
  std::mt19937_64 random_;
};

class PriorityStore : public ElementStore {
 public:
  void put(StoredElement element) override { push(std::move(element), ++newest_); }
  StoredElement take() override {
    std::pop_heap(heap_.begin(), heap_.end(), comes_later);
    StoredElement element = std::move(heap_.back().element);
    heap_.pop_back();
    return element;
  }
  void put_back(std::vector<StoredElement> taken) override {
    for (auto element = taken.rbegin(); element != taken.rend(); ++element) push(std::move(*element), --oldest_);
  }
  size_t size() const override { return heap_.size(); }
  bool by_priority() const override { return true; }

 private:
  struct Entry {
    int64_t priority;
    int64_t age;
    StoredElement element;
  };
  static bool comes_later(const Entry& a, const Entry& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.age > b.age;
  }
  void push(StoredElement element, int64_t age) {
    const auto priority = element.component(0).item<int64_t>();
    heap_.push_back({priority, age, std::move(element)});
    std::push_heap(heap_.begin(), heap_.end(), comes_later);
  }

  std::vector<Entry> heap_;
  int64_t newest_ = 0, oldest_ = 0;
};

}  // namespace

std::unique_ptr<ElementStore> make_fifo_store() {
  return std::make_unique<FifoStore>();
}

std::unique_ptr<ElementStore> make_shuffle_store(uint64_t seed, uint64_t seed2) {
  return std::make_unique<ShuffleStore>(seed, seed2);
}

std::unique_ptr<ElementStore> make_priority_store() {
  return std::make_unique<PriorityStore>();
}

}  // namespace longhaul
