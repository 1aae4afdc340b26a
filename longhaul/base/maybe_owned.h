#pragma once

#include <memory>
#include <utility>

namespace longhaul {

// An object that is used beyond the call that it is passed to. Either shared, so that it lives until its last user
// releases it; or lent by pointer, and then its owner keeps it alive until everything that it was passed to has ended.
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
