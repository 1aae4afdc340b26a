#include "longhaul/train/saved_state/object_checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/proto/parsed_size.h"
#include "longhaul/proto/trackable_object_graph.pb.h"
#include "longhaul/train/saved_state/restore_check.h"

namespace longhaul {
namespace {

constexpr char kObjectGraph[] = "_CHECKPOINTABLE_OBJECT_GRAPH";

ObjectKeys read_keys(const BundleReader& reader) {
  proto::TrackableObjectGraph graph;
  if (!proto::parse_within_limits(reader.read(kObjectGraph).item<std::string>(), &graph)) {
    throw DataLossError(fmt::format("{}: {} cannot be parsed", reader.prefix(), kObjectGraph));
  }
  ObjectKeys keys;
  for (const auto& node : graph.nodes()) {
    for (const auto& attribute : node.attributes()) {
      if (!attribute.full_name().empty()) keys[attribute.full_name()] = attribute.checkpoint_key();
    }
  }
  return keys;
}

}  // namespace

std::optional<ObjectKeys> object_keys_for(const BundleReader& reader,
                                          const std::vector<SaverNodes::SavedTensor>& tensors) {
  const auto is_there = [&](const SaverNodes::SavedTensor& tensor) { return reader.has(tensor.name); };
  if (!reader.has(kObjectGraph) || std::all_of(tensors.begin(), tensors.end(), is_there)) return std::nullopt;
  ObjectKeys keys = read_keys(reader);
  std::vector<std::string> missing, known;
  for (const auto& tensor : tensors) {
    if (!keys.contains(tensor.name)) missing.push_back(tensor.name);
  }
  if (missing.empty()) {
    log_warning(
        "Restoring an object-based checkpoint using a name-based saver: {}. Variables are matched by the names that "
        "they had in their graph; a changed name goes unnoticed",
        reader.prefix());
    return keys;
  }
  for (const auto& [name, key] : keys) known.push_back(name);
  throw NotFoundError(
      fmt::format("{} is an object-based checkpoint. Could not find some variables in it: {}. It has these names: {}",
                  reader.prefix(), fmt::join(missing, ", "), fmt::join(known, ", ")));
}

Feeds object_feeds(const BundleReader& reader, const std::vector<SaverNodes::SavedTensor>& tensors,
                   const ObjectKeys& keys) {
  std::vector<SaverNodes::SavedTensor> renamed = tensors;
  for (auto& tensor : renamed) tensor.name = keys.at(tensor.name);
  check_restorable(reader, renamed);
  Feeds feeds;
  for (const auto& tensor : renamed) {
    feeds.emplace_back(tensor.restored,
                       tensor.slice.empty()
                           ? reader.read(tensor.name)
                           : reader.read_slice(tensor.name, parse_shape_and_slice(tensor.slice).second));
  }
  return feeds;
}

}  // namespace longhaul
