#pragma once

// For a program's tests: a clock that the test moves, file systems with planned faults and power cuts, a session that
// needs no libtorch, and temporary directories. They work with any test framework, or none.

#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/fault_plan.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/testing/memory_file_system.h"
#include "longhaul/testing/planned_faults.h"
#include "longhaul/testing/power_cut_file_system.h"
#include "longhaul/testing/scripted_session.h"
#include "longhaul/testing/temporary_directory.h"
