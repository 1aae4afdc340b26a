#pragma once

// Supervisor, its services, also for those of a program's own, and basic_train_loop().

#include "longhaul/train/supervisor/basic_train_loop.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/supervisor/supervisor_services.h"
