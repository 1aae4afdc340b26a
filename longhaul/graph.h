#pragma once

// Graphs and scopes, and GraphDefs: export, import, files.

#include "longhaul/graph/graph.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/graph/graph_def/graph_files.h"
#include "longhaul/graph/graph_def/import_graph_def.h"
#include "longhaul/graph/scope.h"
