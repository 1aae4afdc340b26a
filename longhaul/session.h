#pragma once

// Sessions, which run graphs: runs, callables, fetches into structs, snapshots of the variables and the other
// capabilities of a session; and the environment, on which results depend as well as on the graph. For in-process
// sessions, include longhaul.h.

#include "longhaul/session/environment.h"
#include "longhaul/session/fetch_into.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/session/step_fetch.h"
#include "longhaul/session/step_watch.h"
