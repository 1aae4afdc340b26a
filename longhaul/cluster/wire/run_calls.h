#pragma once

#include "longhaul/cluster/wire/master_calls.h"

// The methods of MasterService that run, or prepare runs.
namespace longhaul {

void run_step(MasterState& state, const ClientCall& client);
void make_callable(MasterState& state, const ClientCall& client);
void run_callable(MasterState& state, const ClientCall& client);
void release_callable(MasterState& state, const ClientCall& client);
void refuse_partial_run(MasterState& state, const ClientCall& client);

}  // namespace longhaul
