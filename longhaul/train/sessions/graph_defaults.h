#pragma once

#include <memory>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"

namespace longhaul {

// A program's settings for the operations that supervise its training (SupervisorOptions, ScaffoldOptions). A setting
// that is left open takes its value from the graph's collection of that name ("ready_op", "init_op", ...). If the
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

// What to do if a collection has several elements.
enum class Several { kTakeFirst, kRefuse };

// The rules for filling in the settings, which differ between the front ends.
struct DefaultRules {
  Several several = Several::kTakeFirst;
  bool waits_for_globals = false;  // ready_for_local_init_op names global variables not initialised; else: none
  SaverOptions saver;              // of a new saver; with allow_empty even if nothing is to be saved
};

// The settings, filled in. A member is invalid or empty if it is switched off or missing.
struct GraphDefaults {
  Output ready_op;
  Output ready_for_local_init_op;
  OpList init_op;
  OpList local_init_op;
  std::shared_ptr<Saver> saver;  // the caller's own, or a new one
  Output summary_op;
  Output global_step;
};

// InvalidArgumentError, FailedPreconditionError: the settings do not fit the graph. FailedPreconditionError "More than
// one item": a collection has several elements, and `rules` refuse that.
GraphDefaults resolve_defaults(Graph& graph, const GraphSettings& settings, const DefaultRules& rules);

// Returns a saver with the definition in the graph's collection `savers`, or nullptr if there is none. `options` apply
// to everything that the definition leaves open. FailedPreconditionError, InvalidArgumentError: as above.
std::shared_ptr<Saver> find_saver(Graph& graph, Several several, const SaverOptions& options = {});

}  // namespace longhaul
