#include "longhaul/host/queues/seed.h"

#include <random>

namespace longhaul {

uint64_t seed_of_name(std::string_view name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

uint64_t fresh_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

}  // namespace longhaul
