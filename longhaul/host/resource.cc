#include "longhaul/host/resource.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/host/kernels/host_kernel.h"

namespace longhaul {

std::shared_ptr<Resource> ResourceMap::find_or_make(const ResourceName& name, const Make& make) {
  MutexLock lock(mutex_);
  std::shared_ptr<Resource>& resource = resources_[name];
  if (!resource) resource = make();
  return resource;
}

std::vector<std::shared_ptr<Resource>> ResourceMap::remove(const std::vector<std::string>& containers) {
  std::vector<std::shared_ptr<Resource>> removed;
  MutexLock lock(mutex_);
  for (auto it = resources_.begin(); it != resources_.end();) {
    if (is_among(it->first.container, containers)) {
      removed.push_back(std::move(it->second));
      it = resources_.erase(it);
    } else {
      ++it;
    }
  }
  return removed;
}

void ResourceMap::clear() {
  MutexLock lock(mutex_);
  resources_.clear();
}

std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources) {
  const auto make = find_resource_maker(handle.type());
  if (make == nullptr)
    throw UnimplementedError(fmt::format("{}: this session cannot create a {}", handle.name(), handle.type()));
  const auto [container, name] = resource_name(handle, resources.default_container());
  const ResourceName own{container, handle.type() + " " + name};
  std::shared_ptr<Resource> resource = resources.find_or_make(own, [&] { return make(handle); });
  resource->check_handle(handle);
  return resource;
}

}  // namespace longhaul
