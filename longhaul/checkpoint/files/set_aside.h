#pragma once

#include <string>

#include "longhaul/io/file.h"

namespace longhaul {

// Keeps a committed checkpoint available while another one of the same name is written: hard links give it a second
// name, "<prefix>.aside", which readers look for when "<prefix>.index" is missing. Each function links the index last
// and removes it first, so that at any moment, even after a crash, whichever of the two has an index is intact.
std::string aside_prefix(const std::string& prefix);
std::string without_aside(const std::string& prefix);

// <prefix> is committed -> <prefix>.aside is the same checkpoint, durably, and <prefix> is no longer committed.
void set_aside(FileSystem& files, const std::string& prefix);

// Undoes set_aside(): the files under <prefix> are replaced by those set aside. A MetaGraph of the new checkpoint is
// removed if the old one has none.
void put_back(FileSystem& files, const std::string& prefix);

// Removes what was set aside.
void drop_aside(FileSystem& files, const std::string& prefix);

}  // namespace longhaul
