#pragma once

#include <string>
#include <vector>

#include "tests/soak/training.h"

namespace longhaul::soak {

// A way to disturb a training while it runs.
struct RunCase {
  const char* name;                            // on the command line
  unsigned weight;                             // it comes as often, relative to the others
  unsigned most_in_a_row;                      // so many of them come one after the other, and nothing in between
  const char* what;                            // to people
  FaultyRun (*run)(const Training&, Random&);  // it has ended when this returns
};

const std::vector<RunCase>& run_cases();

// Those that do something to the directory as a whole: directory_cases.cc.
FaultyRun run_with_directory_away_for_a_while(const Training& training, Random& random);
FaultyRun run_with_directory_away_until_killed(const Training& training, Random& random);
FaultyRun start_without_index_files(const Training& training, Random& random);

}  // namespace longhaul::soak
