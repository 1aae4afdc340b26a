#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/resource_name.h"

namespace longhaul {

// Something in a session other than a variable: a queue, a table, a reader. Its operations may run on any thread.
class Resource {
 public:
  virtual ~Resource() = default;
  // InvalidArgumentError: the handle does not match this resource, which was created for another handle with the same
  // shared_name.
  virtual void check_handle(const Operation&) const {}
  // Its container was reset: ends all waits, and makes later ones fail, with an AbortedError that says `why`. Runs
  // under way may still use it.
  virtual void drop(const std::string& why) { (void)why; }
};

// The resources of a task or a session, by container and name. Any thread may call.
class ResourceMap {
 public:
  explicit ResourceMap(std::string default_container = kLocalContainer)
      : default_container_(std::move(default_container)) {}

  const std::string& default_container() const { return default_container_; }

  using Make = std::function<std::shared_ptr<Resource>()>;
  // Returns the resource of that name. The first call creates it.
  std::shared_ptr<Resource> find_or_make(const ResourceName& name, const Make& make) EXCLUDES(mutex_);
  // The same in the default container.
  std::shared_ptr<Resource> find_or_make(const std::string& name, const Make& make) EXCLUDES(mutex_) {
    return find_or_make(ResourceName{default_container_, name}, make);
  }
  // Forgets all resources. Those that somebody still holds stay alive.
  void clear() EXCLUDES(mutex_);
  // Forgets the resources of these containers (of none: of all), and returns them: drop() is the caller's, without
  // locks.
  std::vector<std::shared_ptr<Resource>> remove(const std::vector<std::string>& containers) EXCLUDES(mutex_);

 private:
  const std::string default_container_;
  Mutex mutex_;
  std::map<ResourceName, std::shared_ptr<Resource>> resources_ GUARDED_BY(mutex_);
};

// The resource that a handle (`FIFOQueueV2`, `HashTableV2`, ...) stands for (resource_name()). Handles of different
// types never share a resource. Of several handles with the same type and name, the first that is used creates the
// resource; the capacity, order or file format of the others is ignored. InvalidArgumentError: the handle declares
// other dtypes or shapes for a queue's elements, or resource_name() refuses its names. (The dtypes of a table are
// checked when it is used.)
std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources);

}  // namespace longhaul
