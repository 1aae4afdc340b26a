#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace longhaul {

// The most hosts, and the most tasks, that a text of Slurm may name: a short one could name any number.
inline constexpr int kMostLaunchedTasks = 1 << 16;

// The hosts of a Slurm node list: "node[01-03,7],login,r[1-2]n[0-1]" are node01, node02, node03, node7, login, r1n0,
// r1n1, r2n0 and r2n1. A number in brackets has as many digits as the first of its range. InvalidArgumentError: it is
// no such list, names a host twice, has more than kMostLaunchedTasks hosts, or more than 1 MiB.
std::vector<std::string> expand_host_list(std::string_view text);

// The number of tasks on each host, as SLURM_TASKS_PER_NODE has it: "2(x3),1" is 2, 2, 2 and 1. InvalidArgumentError:
// it is not such a list, or there are more than kMostLaunchedTasks hosts or tasks.
std::vector<int> expand_task_counts(std::string_view text);

}  // namespace longhaul
