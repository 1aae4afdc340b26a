#pragma once

// Clusters: their jobs, the addresses of their tasks, and who may talk to them.

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/spec/cluster_spec.h"
