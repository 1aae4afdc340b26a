#pragma once

// MonitoredTrainingSession, MonitoredSession, and their parts: scaffolds, session creators, SessionManager.

#include "longhaul/train/monitored/monitored_session.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/sessions/scaffold.h"
#include "longhaul/train/sessions/session_creator.h"
#include "longhaul/train/sessions/session_manager.h"
#include "longhaul/train/tenure/chief_tenure.h"
