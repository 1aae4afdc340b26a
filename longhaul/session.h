#pragma once

// Sessions, which run graphs: runs, callables, fetches into structs, snapshots of the variables, and what results
// depend on beside the graph. longhaul.h brings along what makes sessions in this process.

#include "longhaul/session/environment.h"
#include "longhaul/session/fetch_into.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
