#pragma once

#include <string>
#include <vector>

namespace longhaul {

// Files that other processes were to write for a save of this one that was given up. Whoever has not heard of that in
// time may still make one, so the next save in the directory removes them. Any thread may call.
void note_given_up_file(const std::string& path);
std::vector<std::string> take_given_up_files(const std::string& directory);  // of that directory; each once

}  // namespace longhaul
