#pragma once

#include <cstdint>
#include <string>

namespace longhaul::testing {

// The checkpoints of the example's cluster. Each step counts up the model's step on one ps and the count of its replica
// on another, so that what is of several moments shows.
std::string newest_cluster_checkpoint(const std::string& logdir);  // its prefix; empty: there is none
int64_t saved_number(const std::string& prefix, const std::string& variable);
int64_t step_of_checkpoint(const std::string& prefix);

// A data file of each ps, and every step is one of a replica; each replica has made some. Fails the test otherwise.
void expect_of_one_moment(const std::string& prefix);

}  // namespace longhaul::testing
