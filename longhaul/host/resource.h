#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/operation.h"

namespace longhaul {

// What lives in a session and is no variable: a queue, a table, a reader. Its operations may run on any thread.
class Resource {
 public:
  virtual ~Resource() = default;
  // InvalidArgumentError: the handle is on something else than this, which another one of its shared_name has made.
  virtual void check_handle(const Operation&) const {}
};

// The resources of a session, by name. Any thread.
class ResourceMap {
 public:
  using Make = std::function<std::shared_ptr<Resource>()>;
  // The resource of that name, made at the first call.
  std::shared_ptr<Resource> find_or_make(const std::string& name, const Make& make) EXCLUDES(mutex_);
  // Forgets all; whoever holds one keeps it.
  void clear() EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Resource>> resources_ GUARDED_BY(mutex_);
};

// The resource that a handle (`FIFOQueueV2`, `HashTableV2`, ...) stands for: by its shared_name, else by its own name.
// Handles of different types never share. Of one type and name the first to be used makes it: what the others say about
// its capacity, its order or its file format counts for nothing, but InvalidArgumentError: elements of a queue are of
// other dtypes or shapes. (A table's dtypes are checked when it is used.)
std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources);

}  // namespace longhaul
