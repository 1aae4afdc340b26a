#pragma once

// Servers: tasks of a cluster that listen for each other and for clients.

#include "longhaul/grpc/server/server.h"
