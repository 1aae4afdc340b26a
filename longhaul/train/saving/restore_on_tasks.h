#pragma once

#include <vector>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/session/session.h"
#include "longhaul/train/saved_state/saver_graph.h"

namespace longhaul {

// Puts the values of a checkpoint back. In a session on several tasks each reads its own where all see the checkpoint;
// where one does not, this process reads it and feeds the values, in runs of at most TaskSnapshots::most_in_flight()
// bytes, or of one variable that is larger. Variables that have no value yet come last, in runs of their own: so a
// model that is not ready (ReportUninitializedVariables) is not before all else has its value on all tasks, and nobody
// trains one that is set back in part. A restore of several runs is not a single step: if one of them fails, some
// variables have been restored and others have not.
//
// `feeds`: the checkpoint's name, first, and what is fed instead of being read. `tensors`: those that are to be read.
// Throws what the session throws; DataLossError: a value is damaged.
void restore_values(Session& session, FileSystem& files, const SaverNodes& nodes, const BundleReader& reader,
                    const std::vector<SaverNodes::SavedTensor>& tensors, Feeds feeds);

}  // namespace longhaul
