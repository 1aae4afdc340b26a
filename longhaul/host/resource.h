#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/operation.h"

namespace longhaul {

// Something in a session other than a variable: a queue, a table, a reader. Its operations may run on any thread.
class Resource {
 public:
  virtual ~Resource() = default;
  // InvalidArgumentError: the handle does not match this resource, which another handle with the same shared_name has
  // created.
  virtual void check_handle(const Operation&) const {}
};

// The resources of a session, by name. Any thread.
class ResourceMap {
 public:
  using Make = std::function<std::shared_ptr<Resource>()>;
  // The resource of that name, created by the first call.
  std::shared_ptr<Resource> find_or_make(const std::string& name, const Make& make) EXCLUDES(mutex_);
  // Forgets all; resources that are still held stay alive.
  void clear() EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Resource>> resources_ GUARDED_BY(mutex_);
};

// The resource that a handle (`FIFOQueueV2`, `HashTableV2`, ...) stands for: by its shared_name, else by its own name.
// Handles of different types never share. Among those with the same type and name, the first one used creates it: the
// others' capacity, order or file format is ignored. InvalidArgumentError: the handle declares other dtypes or shapes
// for a queue's elements. (A table's dtypes are checked when it is used.)
std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources);

}  // namespace longhaul
