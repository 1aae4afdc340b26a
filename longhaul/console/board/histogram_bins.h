#pragma once

#include <cstddef>
#include <vector>

#include "longhaul/proto/summary.pb.h"

namespace longhaul::console {

// The counts of a histogram in equally wide bins from `low` to `high`: the count of a bucket is divided among the bins
// that it overlaps. What is no number of things, or lies nowhere, is left out, whatever the message has.
std::vector<double> counts_in_bins(const proto::HistogramProto& histogram, double low, double high, size_t bins);

}  // namespace longhaul::console
