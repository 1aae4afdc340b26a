#pragma once

#include <string>

namespace longhaul::fuzz {

// Put right checksums into a damaged file, as far as its other bytes still say where they are: what stands behind a
// checksum would otherwise never be reached.
void repair_records(std::string& file);
void repair_table(std::string& file);

}  // namespace longhaul::fuzz
