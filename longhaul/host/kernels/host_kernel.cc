#include "longhaul/host/kernels/host_kernel.h"

#include <unordered_map>

namespace longhaul {
namespace {

struct AllTables {
  std::unordered_map<std::string, HostKernel> kernels;
  std::unordered_map<std::string, ResourceMaker> resources;
};

const AllTables& all_tables() {
  static const AllTables* tables = [] {
    auto* all = new AllTables;
    for (const HostKernelTable& table :
         {accumulator_host_kernels(), array_host_kernels(), image_host_kernels(), input_host_kernels(),
          lookup_host_kernels(), parsing_host_kernels(), queue_host_kernels(), random_host_kernels(),
          reader_host_kernels(), summary_host_kernels(), sync_token_host_kernels()}) {
      all->kernels.insert(table.kernels.begin(), table.kernels.end());
      all->resources.insert(table.resources.begin(), table.resources.end());
    }
    return all;
  }();
  return *tables;
}

template <typename Map>
typename Map::mapped_type find(const Map& map, const std::string& type) {
  const auto it = map.find(type);
  return it == map.end() ? nullptr : it->second;
}

}  // namespace

HostKernel find_host_kernel(const std::string& type) {
  return find(all_tables().kernels, type);
}

ResourceMaker find_resource_maker(const std::string& type) {
  return find(all_tables().resources, type);
}

}  // namespace longhaul
