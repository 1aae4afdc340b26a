#pragma once

#include <memory>

#include "longhaul/base/defaulted.h"
#include "longhaul/base/maybe_owned.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/sessions/session_manager.h"

namespace longhaul {

// What a program says of the operations that supervise its training (SupervisorOptions, ScaffoldOptions). What it
// leaves open is the element of the graph's collection of that name ("ready_op", "init_op", ...); if the collection is
// empty, it is made and put there. kNone switches the thing off.
struct GraphSettings {
  Defaulted<Output> ready_op;
  Defaulted<Output> ready_for_local_init_op;
  Defaulted<OpList> init_op;
  Defaulted<OpList> local_init_op;
  Defaulted<MaybeOwned<Saver>> saver;
  Defaulted<Output> summary_op;
  Defaulted<Output> global_step;
};

// What counts of a collection with several elements.
enum class Several { kTakeFirst, kRefuse };

// In what those who fill in the settings differ.
struct DefaultRules {
  Several several = Several::kTakeFirst;
  bool waits_for_globals = false;  // ready_for_local_init_op names the global variables not initialised; else: none
  SaverOptions saver;              // of one that is made; with allow_empty also where there is nothing to save
};

// The settings filled in. Invalid and empty where something is switched off or not there.
struct GraphDefaults {
  Output ready_op;
  Output ready_for_local_init_op;
  OpList init_op;
  OpList local_init_op;
  std::shared_ptr<Saver> saver;  // the caller's own, or one that was made
  Output summary_op;
  Output global_step;
};

// InvalidArgumentError, FailedPreconditionError: the graph does not allow it. FailedPreconditionError "More than one
// item": a collection has several, and they are refused.
GraphDefaults resolve_defaults(Graph& graph, const GraphSettings& settings, const DefaultRules& rules);

// A saver with the definition in the graph's collection `savers`; nullptr: there is none. Of `options` those count that
// a definition leaves open. FailedPreconditionError, InvalidArgumentError: as above.
std::shared_ptr<Saver> find_saver(Graph& graph, Several several, const SaverOptions& options = {});

}  // namespace longhaul
