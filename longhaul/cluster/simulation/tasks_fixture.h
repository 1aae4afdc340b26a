#pragma once

#include <string>

// Names for tests.
namespace longhaul {

inline const std::string kPs = "/job:ps/replica:0/task:0";
inline const std::string kPs1 = "/job:ps/replica:0/task:1";
inline const std::string kWorker = "/job:worker/replica:0/task:0";
inline const std::string kWorker1 = "/job:worker/replica:0/task:1";

}  // namespace longhaul
