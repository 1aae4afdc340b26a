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
  // InvalidArgumentError: the handle does not match this resource, which was created for another handle with the same
  // shared_name.
  virtual void check_handle(const Operation&) const {}
};

// The resources of a session, by name. Any thread may call.
class ResourceMap {
 public:
  using Make = std::function<std::shared_ptr<Resource>()>;
  // Returns the resource of that name. The first call creates it.
  std::shared_ptr<Resource> find_or_make(const std::string& name, const Make& make) EXCLUDES(mutex_);
  // Forgets all resources. Those that somebody still holds stay alive.
  void clear() EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Resource>> resources_ GUARDED_BY(mutex_);
};

// The resource that a handle (`FIFOQueueV2`, `HashTableV2`, ...) stands for: by its shared_name, else by its own name.
// Handles of different types never share a resource. Of several handles with the same type and name, the first that is
// used creates the resource; the capacity, order or file format of the others is ignored. InvalidArgumentError: the
// handle declares other dtypes or shapes for a queue's elements. (The dtypes of a table are checked when it is used.)
std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources);

}  // namespace longhaul
