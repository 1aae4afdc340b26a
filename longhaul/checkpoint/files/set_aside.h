#pragma once

#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// How a committed checkpoint stays available while another one of the same name is written: by hard links it gets a
// second name, "<prefix>.aside", which readers look for when "<prefix>.index" is missing. In each function the index is
// linked last and removed first, so at any moment, also that of a crash, whichever of the two has an index is whole.
std::string aside_prefix(const std::string& prefix);
std::string without_aside(const std::string& prefix);

// <prefix> is committed -> <prefix>.aside is the same checkpoint, durably, and <prefix> is committed no more.
void set_aside(FileSystem& files, const std::string& prefix);

// Undoes it: the files under <prefix> are replaced by those set aside. A MetaGraph of the new checkpoint does not stay
// where the old one has none.
void put_back(FileSystem& files, const std::string& prefix);

// Removes what was set aside.
void drop_aside(FileSystem& files, const std::string& prefix);

}  // namespace longhaul
