#include <fmt/format.h>

#include <set>

#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"
#include "longhaul/host/queues/random_stream.h"
#include "longhaul/host/queues/rows.h"

namespace longhaul {
namespace {

void random_shuffle(HostCall& call) {
  const Tensor& x = call.inputs[0];
  row_elements(x);
  const auto seed = call.random_seed ? *call.random_seed : random_stream(call.op, call.own)->take_for_other_run().seed;
  std::mt19937_64 random(seed);
  call.results.push_back(gather_rows(x, random_order(x.shape().dim(0), random)));
}

void gather(HostCall& call) {
  const Tensor &x = call.inputs[0], &indices = call.inputs[1];
  if (call.inputs[2].item<int64_t>() != 0) throw InvalidArgumentError("rows are gathered along axis 0 only");
  const Tensor rows = gather_rows(x, to_int64s(indices));
  std::vector<int64_t> dims = indices.shape().dims();
  dims.insert(dims.end(), x.shape().dims().begin() + 1, x.shape().dims().end());
  call.results.push_back(rows.reshaped(Shape(std::move(dims))));
}

void boolean_mask(HostCall& call) {
  const Tensor& x = call.inputs[0];
  const auto mask = call.inputs[1].flat<bool>();
  row_elements(x);
  if (mask.size() != static_cast<size_t>(x.shape().dim(0))) {
    throw InvalidArgumentError(
        fmt::format("the mask has {} values, but there are {} rows", mask.size(), x.shape().dim(0)));
  }
  std::vector<int64_t> rows;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i]) rows.push_back(static_cast<int64_t>(i));
  }
  call.results.push_back(gather_rows(x, rows));
}

void reshape(HostCall& call) {
  const Tensor& x = call.inputs[0];
  std::vector<int64_t> sizes = to_int64s(call.inputs[1]);
  int64_t known = 1, *open = nullptr;
  for (int64_t& size : sizes) {
    if (size < -1 || (size == -1 && open != nullptr))
      throw InvalidArgumentError("at most one size may be -1, and no other may be negative");
    if (size == -1) {
      open = &size;
    } else if (__builtin_mul_overflow(known, size, &known)) {
      throw InvalidArgumentError("the new shape is too large for memory");
    }
  }
  if (open != nullptr && known != 0) *open = x.num_elements() / known;
  call.results.push_back(x.reshaped(Shape(std::move(sizes))));
}

void expand_dims(HostCall& call) {
  const Tensor& x = call.inputs[0];
  const int64_t rank = x.shape().rank(), given = call.inputs[1].item<int64_t>();
  if (given < -rank - 1 || given > rank) {
    throw InvalidArgumentError(fmt::format("dim {} is out of range for a tensor of {} dimensions", given, rank));
  }
  std::vector<int64_t> dims = x.shape().dims();
  dims.insert(dims.begin() + (given < 0 ? given + rank + 1 : given), 1);
  call.results.push_back(x.reshaped(Shape(std::move(dims))));
}

void pack_parts(HostCall& call) {
  const auto* axis = call.op.find_attr<int64_t>("axis");
  call.results.push_back(pack(call.inputs, axis == nullptr ? 0 : *axis));
}

// In the order of all names, which is that of a report on one task.
void join_reports(HostCall& call) {
  std::set<std::string> reported;
  for (const Tensor& report : call.inputs) {
    const auto names = report.flat<std::string>();
    reported.insert(names.begin(), names.end());
  }
  std::vector<std::string> joined;
  for (const std::string& name : call.op.attr<std::vector<std::string>>("names")) {
    if (reported.contains(name)) joined.push_back(name);
  }
  call.results.push_back(Tensor::of(std::move(joined)));
}

}  // namespace

HostKernelTable array_host_kernels() {
  return {
      {
          {"RandomShuffle", named_errors<random_shuffle>},
          {"GatherV2", named_errors<gather>},
          {"BooleanMask", named_errors<boolean_mask>},
          {"Reshape", named_errors<reshape>},
          {"ExpandDims", named_errors<expand_dims>},
          {"Pack", named_errors<pack_parts>},
          {"_JoinReports", named_errors<join_reports>},
      },
      {},
  };
}

}  // namespace longhaul
