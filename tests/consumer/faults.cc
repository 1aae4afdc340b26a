// Runs its own writing of a file on a disk that is full, as planned.
#include <iostream>

#include "longhaul/base.h"
#include "longhaul/testing.h"

namespace lh = longhaul;

int main() {
  lh::testing::PlannedFaults files(lh::testing::parse_fault_plan("enospc@write(.records):1"));
  const auto is_written = [&] {
    try {
      lh::write_file_atomically(files, "consumer_faults.records", "a record");
      return true;
    } catch (const lh::ResourceExhaustedError& error) {
      std::cout << error.what() << "\n";
      return false;
    }
  };
  const bool first = is_written(), second = is_written();
  lh::FileSystem::real().remove("consumer_faults.records");
  return !first && second ? 0 : 1;
}
