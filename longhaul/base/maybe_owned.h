#pragma once

#include <memory>
#include <utility>

namespace longhaul {

// Something that is used beyond the call that it is passed to: shared, so that it lives until its last user lets go, or
// lent by a pointer, whose owner keeps it alive until everybody that it was passed to has ended.
template <typename T>
class MaybeOwned {
 public:
  MaybeOwned(T* lent) : pointer_(lent, [](T*) {}) {}
  MaybeOwned(std::shared_ptr<T> shared) : pointer_(std::move(shared)) {}

  const std::shared_ptr<T>& pointer() const { return pointer_; }

 private:
  std::shared_ptr<T> pointer_;
};

}  // namespace longhaul
