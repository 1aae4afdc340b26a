#pragma once

#include <string>

namespace longhaul {

// What a process is about to need at once.
struct ProcessRoom {
  int descriptors = 0;
  int threads = 0;
};

// Tries out whether the process can have so much more, and gives it back: a limit may be the process's, the user's, a
// control group's or the machine's. For libraries that abort or hang without it. ResourceExhaustedError: it cannot;
// `what` needs it ("a server of /job:ps/task:0"), and the message says how much there is and which limit to raise.
void check_room(const ProcessRoom& needed, const std::string& what);

}  // namespace longhaul
