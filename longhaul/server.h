#pragma once

// Servers: tasks of a cluster that listen for each other and for clients. Including it makes the targets of sessions on
// servers known: "local", "grpc://host:port". For programs on several machines, which link gRPC.

#include "longhaul/grpc/server/install.h"
#include "longhaul/grpc/server/server.h"
