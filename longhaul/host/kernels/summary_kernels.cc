#include "longhaul/events/summary.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/host/kernels/attr_or.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/host/kernels/named_errors.h"

namespace longhaul {
namespace {

std::string tag(const HostCall& call) {
  return call.inputs[0].item<std::string>();
}

void give(HostCall& call, const proto::Summary& summary) {
  call.results.push_back(Tensor::scalar(summary.SerializeAsString()));
}

constexpr int64_t kMaxOutputs = 3;  // by default

void scalar(HostCall& call) {
  give(call, scalar_summary(tag(call), call.inputs[1]));
}

void histogram(HostCall& call) {
  give(call, histogram_summary(tag(call), call.inputs[1]));
}

void image(HostCall& call) {
  const Tensor* bad_color = call.op.find_attr<Tensor>("bad_color");
  give(call, image_summary(tag(call), call.inputs[1], attr_or(call.op, "max_images", kMaxOutputs),
                           bad_color == nullptr ? std::span<const uint8_t>(kBadColor) : bad_color->flat<uint8_t>()));
}

void audio(HostCall& call) {
  give(call, audio_summary(tag(call), call.inputs[1], call.inputs[2].item<float>(),
                           attr_or(call.op, "max_outputs", kMaxOutputs)));
}

void tensor(HostCall& call) {
  proto::SummaryMetadata metadata;
  if (!metadata.ParseFromString(call.inputs[2].item<std::string>()))
    throw InvalidArgumentError("summary " + tag(call) + ": its metadata is not a SummaryMetadata");
  give(call, tensor_summary(tag(call), to_proto(call.inputs[1]), std::move(metadata)));
}

void merge(HostCall& call) {
  std::vector<std::string> parts;
  for (const Tensor& input : call.inputs) {
    for (const std::string& part : input.flat<std::string>()) parts.push_back(part);
  }
  call.results.push_back(Tensor::scalar(merge_summaries(parts)));
}

}  // namespace

HostKernelTable summary_host_kernels() {
  return {
      {
          {"ScalarSummary", named_errors<scalar>},
          {"HistogramSummary", named_errors<histogram>},
          {"ImageSummary", named_errors<image>},
          {"AudioSummaryV2", named_errors<audio>},
          {"TensorSummaryV2", named_errors<tensor>},
          {"MergeSummary", named_errors<merge>},
      },
      {},
  };
}

}  // namespace longhaul
