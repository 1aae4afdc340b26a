#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/io/files/file.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/session/environment.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// 16 hexadecimal digits, equal for graphs that compute the same: a hash of the operations' types, names, inputs and
// attributes, and of the graph's seed. String constants (file names) and the savers' own operations do not count.
std::string graph_fingerprint(const Graph& graph);

// The environment of this process and of that graph. A training run in an equal environment produces the same bits.
Environment environment_of(const std::string& graph_fingerprint);

// The environment is recorded in the MetaInfoDef.any_info of a checkpoint's meta graph: a google.protobuf.StringValue
// with a line "NAME: VALUE" for each fact, sorted by name. Other readers skip it. nullopt: none is recorded.
void record_environment(const Environment& environment, proto::MetaGraphDef* meta_graph);
std::optional<Environment> recorded_environment(const proto::MetaGraphDef& meta_graph);

// The environment recorded in the meta graph next to a checkpoint; nullopt: there is no meta graph, or no record.
std::optional<Environment> recorded_environment(FileSystem& files, const std::string& prefix);

// One sentence for each difference: "it was saved with threads 2, this run has 4".
std::vector<std::string> differences(const Environment& then, const Environment& now);

// Whether a graph into which these tensors are restored continues the training run that saved them: it has operations
// other than Assign that update global variables, and all variables that they update are among `restored`. A graph for
// evaluation has no such operations; a different training run, which starts from a part of the tensors, does not
// restore them all.
bool goes_on_training(const Graph& graph, const std::vector<SaverNodes::SavedTensor>& restored);

// Logs one warning if the checkpoint was made in a different environment; for a different graph it names the operations
// that differ. There is no warning if the meta graph is missing, cannot be read, or has no record.
void warn_of_differences(FileSystem& files, const std::string& prefix, Environment now, const Graph& graph);

}  // namespace longhaul
