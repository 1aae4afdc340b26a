#pragma once

// Supervisor, its services (a program may define more of them), and basic_train_loop().

#include "longhaul/train/supervisor/basic_train_loop.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/supervisor/supervisor_services.h"
