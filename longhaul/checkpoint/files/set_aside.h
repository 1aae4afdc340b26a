#pragma once

#include <string>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Keeps a committed checkpoint available while another one of the same name is written: hard links give it a second
// name, "<prefix>.aside", which readers look for when "<prefix>.index" is missing. Each function links the index last
// and removes it first. So at any moment, even after a crash, a prefix with an index is an intact checkpoint.
std::string aside_prefix(const std::string& prefix);
std::string without_aside(const std::string& prefix);

// <prefix> is committed -> <prefix>.aside is the same checkpoint, durably, and <prefix> is no longer committed.
void set_aside(FileSystem& files, const std::string& prefix);

// Undoes set_aside(): replaces the files under <prefix> with those set aside. Removes the meta graph of the new
// checkpoint if the old one has none.
void put_back(FileSystem& files, const std::string& prefix);

// Removes the files that were set aside.
void drop_aside(FileSystem& files, const std::string& prefix);

}  // namespace longhaul
