#pragma once

#include <memory>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"

namespace longhaul {

// A program's settings for the operations that supervise its training (SupervisorOptions, ScaffoldOptions). A setting
// left open stands for the element of the graph's collection of that name ("ready_op", "init_op", ...); if the
// collection is empty, the operation is created and added to it. kNone switches the feature off.
struct GraphSettings {
  Defaulted<Output> ready_op;
  Defaulted<Output> ready_for_local_init_op;
  Defaulted<OpList> init_op;
  Defaulted<OpList> local_init_op;
  Defaulted<MaybeOwned<Saver>> saver;
  Defaulted<Output> summary_op;
  Defaulted<Output> global_step;
};

// How to treat a collection with several elements.
enum class Several { kTakeFirst, kRefuse };

// How the front ends differ in filling in the settings.
struct DefaultRules {
  Several several = Several::kTakeFirst;
  bool waits_for_globals = false;  // ready_for_local_init_op names global variables not initialised; else: none
  SaverOptions saver;              // of a new saver; with allow_empty even if nothing is to be saved
};

// The settings, filled in. Members are invalid or empty for anything switched off or missing.
struct GraphDefaults {
  Output ready_op;
  Output ready_for_local_init_op;
  OpList init_op;
  OpList local_init_op;
  std::shared_ptr<Saver> saver;  // the caller's own, or a new one
  Output summary_op;
  Output global_step;
};

// InvalidArgumentError, FailedPreconditionError: the graph does not allow it. FailedPreconditionError "More than one
// item": a collection has several, and `rules` refuse that.
GraphDefaults resolve_defaults(Graph& graph, const GraphSettings& settings, const DefaultRules& rules);

// A saver with the definition in the graph's collection `savers`; nullptr: there is none. `options` apply where the
// definition leaves something open. FailedPreconditionError, InvalidArgumentError: as above.
std::shared_ptr<Saver> find_saver(Graph& graph, Several several, const SaverOptions& options = {});

}  // namespace longhaul
