#include "longhaul/ops/summary_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "longhaul/base/log.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/ops/training/slot_variable.h"

namespace longhaul::summary {
namespace {

bool is_tag_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '/' || c == '.';
}

std::string clean(std::string_view name) {
  std::string clean(name.substr(std::min(name.find_first_not_of('/'), name.size())));
  for (char& c : clean) {
    if (!is_tag_character(c)) c = '_';
  }
  if (clean != name) log_info("\"{}\" is not a valid summary name; using \"{}\" instead", name, clean);
  return clean;
}

// Where a summary's operation and its constants go, and its tag.
class Place {
 public:
  Place(const Scope& scope, std::string_view name, const SummaryOptions& options)
      : scope_(scope), family_(clean(options.family)), collections_(options.collections) {
    const std::string relative = family_.empty() ? clean(name) : family_ + "/" + clean(name);
    full_ = ops::free_name(scope.graph(), scope.prefix() + relative);
  }

  // A constant of the summary's own.
  Output constant(Tensor value, std::string_view name) const {
    return ops::constant(Scope(scope_.graph()).within(full_), std::move(value), name);
  }
  Output tag(std::string_view name) const {
    return constant(Tensor::scalar(family_.empty() ? full_ : family_ + "/" + full_), name);
  }
  Output add(const char* type, std::vector<Output> inputs, Attrs attrs) const {
    const std::string name = full_.substr(scope_.prefix().size());
    const Output summary = scope_.add(type, name, std::move(inputs), std::move(attrs)).output();
    for (const std::string& collection : collections_) scope_.graph().add_to_collection(collection, summary);
    return summary;
  }

 private:
  const Scope scope_;
  const std::string family_;
  const std::vector<std::string> collections_;
  std::string full_;  // the operation's name
};

Output add_audio(const Place& place, const Output& sounds, const Output& sample_rate, int64_t max_outputs) {
  return place.add("AudioSummaryV2", {place.tag("tag"), sounds, sample_rate}, {{"max_outputs", max_outputs}});
}

}  // namespace

Output scalar(const Scope& scope, std::string_view name, const Output& value, const SummaryOptions& options) {
  const Place place(scope, name, options);
  return place.add("ScalarSummary", {place.tag("tags"), value}, {{"T", value.dtype()}});
}

Output histogram(const Scope& scope, std::string_view name, const Output& values, const SummaryOptions& options) {
  const Place place(scope, name, options);
  return place.add("HistogramSummary", {place.tag("tag"), values}, {{"T", values.dtype()}});
}

Output image(const Scope& scope, std::string_view name, const Output& images, int64_t max_outputs,
             const SummaryOptions& options) {
  const Place place(scope, name, options);
  return place.add("ImageSummary", {place.tag("tag"), images}, {{"max_images", max_outputs}, {"T", images.dtype()}});
}

Output audio(const Scope& scope, std::string_view name, const Output& sounds, const Output& sample_rate,
             int64_t max_outputs, const SummaryOptions& options) {
  return add_audio(Place(scope, name, options), sounds, sample_rate, max_outputs);
}

Output audio(const Scope& scope, std::string_view name, const Output& sounds, float sample_rate, int64_t max_outputs,
             const SummaryOptions& options) {
  const Place place(scope, name, options);
  return add_audio(place, sounds, place.constant(Tensor::scalar(sample_rate), "sample_rate"), max_outputs);
}

Output text(const Scope& scope, std::string_view name, const Output& texts, const SummaryOptions& options) {
  if (texts.dtype() != kString) {
    throw InvalidArgumentError(fmt::format("summary {}: Expected tensor {} to have dtype string, got {}", name,
                                           texts.name(), dtype_name(texts.dtype())));
  }
  proto::SummaryMetadata metadata;
  metadata.mutable_plugin_data()->set_plugin_name("text");
  return tensor(scope, name, texts, metadata, options);
}

Output tensor(const Scope& scope, std::string_view name, const Output& tensor, const proto::SummaryMetadata& metadata,
              const SummaryOptions& options) {
  const Place place(scope, name, options);
  const Output described = place.constant(Tensor::scalar(metadata.SerializeAsString()), "serialized_summary_metadata");
  return place.add("TensorSummaryV2", {place.tag("tag"), tensor, described}, {{"T", tensor.dtype()}});
}

Output merge(const Scope& scope, const std::vector<Output>& summaries, std::string_view name) {
  return scope.add("MergeSummary", name, summaries, {{"N", static_cast<int64_t>(summaries.size())}}).output();
}

std::optional<Output> merge_all(const Scope& scope, const std::string& collection) {
  const auto summaries = scope.graph().collection_of<Output>(collection);
  if (summaries.empty()) return std::nullopt;
  return merge(scope.sub("Merge"), summaries, "MergeSummary");
}

}  // namespace longhaul::summary
