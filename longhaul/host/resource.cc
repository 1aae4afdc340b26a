#include "longhaul/host/resource.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/host/kernels/host_kernel.h"

namespace longhaul {

std::shared_ptr<Resource> ResourceMap::find_or_make(const std::string& name, const Make& make) {
  MutexLock lock(mutex_);
  std::shared_ptr<Resource>& resource = resources_[name];
  if (!resource) resource = make();
  return resource;
}

void ResourceMap::clear() {
  MutexLock lock(mutex_);
  resources_.clear();
}

std::shared_ptr<Resource> resource_of(const Operation& handle, ResourceMap& resources) {
  const auto make = find_resource_maker(handle.type());
  if (make == nullptr)
    throw UnimplementedError(fmt::format("{}: this session cannot create a {}", handle.name(), handle.type()));
  const std::string* shared_name = handle.find_attr<std::string>("shared_name");
  const std::string& name = shared_name == nullptr || shared_name->empty() ? handle.name() : *shared_name;
  std::shared_ptr<Resource> resource = resources.find_or_make(handle.type() + " " + name, [&] { return make(handle); });
  resource->check_handle(handle);
  return resource;
}

}  // namespace longhaul
