#pragma once

// Clusters: their jobs, and the addresses of their tasks.

#include "longhaul/cluster/spec/cluster_spec.h"
