#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"
#include "longhaul/proto/summary.pb.h"

namespace longhaul {

struct SummaryOptions {
  // The group of the tag in TensorBoard. With a family, the operation's name is "<scopes>/<family>/<name>", and the tag
  // is that name with the family as another prefix.
  std::string family{};

  std::vector<std::string> collections = {collections::kSummaries};  // for merge_all()
};

// Operations that return a serialised Summary (a scalar string). The tag is the operation's name with its scopes, and
// with "_1", ... if that is taken. Characters that a tag cannot contain are replaced, leading slashes are dropped, and
// both are logged. InvalidArgumentError: a value cannot be shown. The call throws it if this is already known,
// otherwise the run fails. For the inputs and output of each kind see events/summary.h.
namespace summary {

// One number of any real dtype, or a bool.
Output scalar(const Scope& scope, std::string_view name, const Output& value, const SummaryOptions& options = {});

// Numbers of any shape.
Output histogram(const Scope& scope, std::string_view name, const Output& values, const SummaryOptions& options = {});

// Images [images, height, width, channels] of uint8, float, half or double; tags "<tag>/image/0", ..., or "<tag>/image"
// if max_outputs is 1.
Output image(const Scope& scope, std::string_view name, const Output& images, int64_t max_outputs = 3,
             const SummaryOptions& options = {});

// Audio of floats from -1 to 1, [clips, frames, channels] or [clips, frames]; tags "<tag>/audio/0", ..., or
// "<tag>/audio". `sample_rate`: a float, frames per second.
Output audio(const Scope& scope, std::string_view name, const Output& sounds, const Output& sample_rate,
             int64_t max_outputs = 3, const SummaryOptions& options = {});
Output audio(const Scope& scope, std::string_view name, const Output& sounds, float sample_rate,
             int64_t max_outputs = 3, const SummaryOptions& options = {});

// A string, or a table of them.
Output text(const Scope& scope, std::string_view name, const Output& texts, const SummaryOptions& options = {});

// A tensor of any dtype, for the plugin that the metadata names.
Output tensor(const Scope& scope, std::string_view name, const Output& tensor, const proto::SummaryMetadata& metadata,
              const SummaryOptions& options = {});

// Merges all summaries into one. Fails if two have the same tag.
Output merge(const Scope& scope, const std::vector<Output>& summaries, std::string_view name = "Merge");
// Merges the summaries in the collection; nullopt if it is empty.
std::optional<Output> merge_all(const Scope& scope, const std::string& collection = collections::kSummaries);

}  // namespace summary
}  // namespace longhaul
