#pragma once

#include <map>
#include <string>

#include "longhaul/launch/launch_environment.h"
#include "longhaul/launch/launched_task.h"

namespace longhaul {

// How the processes of a Slurm step become the tasks of a cluster.
struct SlurmOptions {
  // The number of tasks of each job: {{"chief", 1}, {"ps", 2}, {"worker", kOtherTasks}}. The jobs take consecutive
  // ranks in the order of their names, as in TensorFlow.
  std::map<std::string, int> jobs{};
  int port_base = 8888;  // the port of the first task of a node; each further one has the next

  static constexpr int kOtherTasks = -1;  // of one job: all tasks that the others leave
};

// The cluster of this Slurm step, and this process's task in it. Without SLURM_PROCID, a process that trains alone.
//
//   // srun --nodes=3 --ntasks=5 ./train
//   const LaunchedTask task = task_from_slurm({.jobs = {{"chief", 1}, {"ps", 2}, {"worker", 2}}});
//
// Read are SLURM_PROCID and SLURM_NTASKS, or OMPI_COMM_WORLD_RANK and _SIZE if they are set (mpirun within an
// allocation); SLURM_STEP_NODELIST, else SLURM_JOB_NODELIST or SLURM_NODELIST; SLURM_STEP_TASKS_PER_NODE, else
// SLURM_NTASKS_PER_NODE or SLURM_TASKS_PER_NODE; and SLURM_NODEID, if it is set, to check the result. Nodes are not
// asked, and no command is run.
//
// InvalidArgumentError: a variable is missing or malformed, the numbers do not agree (the jobs' tasks with
// SLURM_NTASKS, the nodes with the tasks on each), a port is above 65535, or Slurm runs this process on another node
// than the cluster says: ranks must go from node to node, as with `srun --distribution=block`.
LaunchedTask task_from_slurm(const SlurmOptions& options, const LaunchEnvironment& environment = process_environment());

}  // namespace longhaul
