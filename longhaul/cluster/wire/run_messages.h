#pragma once

#include <string>
#include <vector>

#include "longhaul/cluster/transport/slices.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/proto/master.pb.h"
#include "longhaul/tensor/tensor.h"

// The messages of a run, which carry tensors. A tensor as bytes, which is how TensorFlow's client sends one, is copied
// once; what is sent shares the tensors' memory (docs/formats/master_service.md).
namespace longhaul {

// A request, and the values that were taken out of it: `message` has no feeds.
struct RunStepCall {
  proto::master::RunStepRequest message;
  std::vector<std::string> feeds;
  std::vector<Tensor> values;  // of the feeds
};
struct RunCallableCall {
  proto::master::RunCallableRequest message;
  std::vector<Tensor> values;
};

// InvalidArgumentError: damaged, or would take too much memory. ResourceExhaustedError: too many feeds, or one value
// stands for too many elements.
RunStepCall read_run_step(const Slices& request);
RunCallableCall read_run_callable(const Slices& request);

// `metadata` may be null. InvalidArgumentError: a value is not defined, as is that of an operation; it is named.
Slices write_run_step(const std::vector<std::string>& names, const std::vector<Tensor>& values,
                      const proto::RunMetadata* metadata);
Slices write_run_callable(const std::vector<Tensor>& values, const proto::RunMetadata* metadata);

// One message, whole.
Slices to_slices(const google::protobuf::MessageLite& message);

}  // namespace longhaul
