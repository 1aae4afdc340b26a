#pragma once

#include <functional>
#include <string>
#include <vector>

#include "longhaul/console/restarts/restart_policy.h"
#include "longhaul/console/text/report.h"

namespace longhaul::console {

// Called with each thing that happens: a line for people, and the same for programs.
using SayEvent = std::function<void(const std::string& text, const Json& json)>;

// longhaul run: starts the command, whose program is found in PATH unless it has a '/', and again when RestartPolicy
// says so. Passes on signals, and after a stop signal (is_stop_signal) starts nothing more: it waits for the program,
// and ends as it does. Reaps whatever becomes its child. Returns the exit status to end with: the program's, or 128 +
// the signal that ended it.
//
// InvalidArgumentError: the command cannot be started at all. For a process with one thread.
int run_restarting(const std::vector<std::string>& command, const RestartOptions& options, const SayEvent& say);

}  // namespace longhaul::console
