#pragma once

#include <memory>
#include <utility>

namespace longhaul {

// An object that is used beyond the call to which it is passed. It is either shared, and lives until its last user
// releases it, or borrowed by pointer, and its owner must keep it alive until everything to which it was passed has
// ended.
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
