#pragma once

// Errors, each with a code that says what to do about it (docs/errors.md); the log and its sink; time; cancellation;
// times without steps.

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/no_steps_expected.h"
