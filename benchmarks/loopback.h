#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace longhaul::bench {

// What TCP on this machine's loopback can do, which calls between tasks stand beside. Errors are UnavailableError.

// Addresses of 127.0.0.1 at which nobody listens, all different.
std::vector<std::string> free_addresses_for(int tasks);

double tcp_seconds(size_t bytes);                        // for so many bytes over a new connection
double tcp_round_trip_seconds(size_t bytes, int times);  // there and back, the mean of so many, between two threads

}  // namespace longhaul::bench
