#include "longhaul/events/summary.h"
#include "longhaul/runtime/kernel.h"

namespace longhaul {
namespace {

std::string tag(const KernelContext& context) {
  return context.input(0).host.item<std::string>();
}

void set_summary(KernelContext& context, const proto::Summary& summary) {
  context.set_output(0, Value(Tensor::scalar(summary.SerializeAsString())));
}

void scalar(KernelContext& context) {
  set_summary(context, scalar_summary(tag(context), context.input(1).to_host()));
}

void histogram(KernelContext& context) {
  set_summary(context, histogram_summary(tag(context), context.input(1).to_host()));
}

void merge(KernelContext& context) {
  std::vector<proto::Summary> parts;
  for (int i = 0; i < context.num_inputs(); ++i) {
    for (const std::string& part : context.input(i).host.flat<std::string>()) parts.push_back(parse_summary(part));
  }
  set_summary(context, merge_summaries(parts));
}

}  // namespace

KernelTable summary_kernels() {
  return {{"ScalarSummary", {scalar}}, {"HistogramSummary", {histogram}}, {"MergeSummary", {merge}}};
}

}  // namespace longhaul
