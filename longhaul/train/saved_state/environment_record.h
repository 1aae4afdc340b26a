#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/graph.h"
#include "longhaul/io/file.h"
#include "longhaul/proto/meta_graph.pb.h"
#include "longhaul/session/environment.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// 16 hexadecimal digits that say whether two graphs compute the same: of the operations' types, names, inputs and
// attributes and of the graph's seed. Constants that are strings (names of files) and the savers' own operations do not
// count.
std::string graph_fingerprint(const Graph& graph);

// What a training of that graph in this process needs to have the same for the same bits.
Environment environment_of(const std::string& graph_fingerprint);

// A checkpoint's meta graph says what it was made with in MetaInfoDef.any_info: a google.protobuf.StringValue with a
// line "NAME: VALUE" for each fact, in the order of names. Other readers skip it. nullopt: it says nothing.
void record_environment(const Environment& environment, proto::MetaGraphDef* meta_graph);
std::optional<Environment> recorded_environment(const proto::MetaGraphDef& meta_graph);

// What the meta graph beside a checkpoint says; nullopt: there is none, or it says nothing.
std::optional<Environment> environment_beside(FileSystem& files, const std::string& prefix);

// What is not the same, a sentence for each: "it was made with threads 2, this run has 4".
std::vector<std::string> differences(const Environment& then, const Environment& now);

// Whether a graph into which these tensors are restored goes on with the training that saved them: it has operations
// that update global variables in other ways than by an Assign, and all the variables that they update are among
// `restored`. It has none of them where it evaluates, and not all are restored where another training begins with a
// part of them.
bool goes_on_training(const Graph& graph, const std::vector<SaverNodes::SavedTensor>& restored);

// Logs one warning if the checkpoint was made with something else, which for a graph names the operations that are not
// the same. One without a meta graph, or with one that cannot be read or says nothing, is none to warn of.
void warn_of_differences(FileSystem& files, const std::string& prefix, Environment now, const Graph& graph);

}  // namespace longhaul
