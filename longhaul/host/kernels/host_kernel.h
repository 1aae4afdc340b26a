#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/resource.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// One execution of an operation that works only on host tensors.
struct HostCall {
  const Operation& op;
  std::span<Tensor> inputs;  // numbered as in the operation; may be kept or moved from; undefined for resources
  std::span<const std::shared_ptr<Resource>> resources;  // one for each of Operation::ref_inputs()
  const WaitLimits& limits;                              // for kernels that wait
  FileSystem& files;
  ResourceMap& own;             // of the session: state that kernels keep between runs, by operation name
  std::vector<Tensor> results;  // empty at first; the kernel adds a tensor for each output of the operation
  std::optional<uint64_t> random_seed = std::nullopt;      // for this run's random numbers, if the runner has drawn it
  const std::shared_ptr<Cancellation>* session = nullptr;  // of the session; nullptr: nobody knows when it ends
  Clock* clock = nullptr;                                  // of the task; nullptr: the machine's

  // The resource that input `i` stands for. InternalError: it is not of that class.
  template <typename T>
  T& resource(size_t i = 0) const {
    auto* found = dynamic_cast<T*>(resources[i].get());
    if (found == nullptr) throw InternalError(op.name() + ": its input is a resource of another kind");
    return *found;
  }
};

// Runs an operation without libtorch. Kernels have no state; their errors name the operation.
using HostKernel = void (*)(HostCall&);
// Creates the resource that an operation with the trait kIsResource stands for.
using ResourceMaker = std::shared_ptr<Resource> (*)(const Operation& handle);

// nullptr: no such type.
HostKernel find_host_kernel(const std::string& type);
ResourceMaker find_resource_maker(const std::string& type);

// The tables behind find_*, one for each file in kernels/.
struct HostKernelTable {
  std::vector<std::pair<std::string, HostKernel>> kernels;
  std::vector<std::pair<std::string, ResourceMaker>> resources;
};
HostKernelTable accumulator_host_kernels();
HostKernelTable array_host_kernels();
HostKernelTable image_host_kernels();
HostKernelTable input_host_kernels();
HostKernelTable lookup_host_kernels();
HostKernelTable parsing_host_kernels();
HostKernelTable queue_host_kernels();
HostKernelTable random_host_kernels();
HostKernelTable reader_host_kernels();
HostKernelTable summary_host_kernels();
HostKernelTable sync_token_host_kernels();

}  // namespace longhaul
