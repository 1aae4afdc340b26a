#pragma once

// What a launcher (Kubernetes, Slurm, mpirun) says about a program's cluster and its own task.

#include "longhaul/launch/slurm.h"
#include "longhaul/launch/tf_config.h"
