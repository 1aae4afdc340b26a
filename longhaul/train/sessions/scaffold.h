#pragma once

#include <functional>
#include <memory>

#include "longhaul/train/sessions/graph_defaults.h"

namespace longhaul {

class Scaffold;

// What is kUseDefault is the element of the graph's collection of that name ("ready_op", "init_op", ...), which may
// have one only; if the collection is empty, what is described here is made and put there. kNone switches the thing
// off.
struct ScaffoldOptions {
  Defaulted<OpList> init_op;                               // initialises all global variables
  Feeds init_feed_dict;                                    // for init_op
  std::function<void(const Scaffold&, Session&)> init_fn;  // called after init_op, not when the model is recovered
  Defaulted<Output> ready_op;                              // names of all variables that are not initialised
  Defaulted<Output> ready_for_local_init_op;               // of the global ones
  Defaulted<OpList> local_init_op;                         // initialises local variables and tables
  Defaulted<Output> summary_op;                            // all summaries of the graph, merged
  Defaulted<MaybeOwned<Saver>> saver;                      // of all global variables, sharded
  bool initialize_missing = false;                         // as ChiefOptions::initialize_missing
  const Scaffold* copy_from = nullptr;                     // has what is left open here, if it has it
  FileSystem* files = &FileSystem::real();                 // of a saver that is made
  Clock* clock = &Clock::real();
};

// The operations with which sessions of a graph are made ready, and its saver: what the program passes, and defaults
// for the rest, which finalize() adds to the graph.
//
//   open --finalize--> finalized
//
// One thread at a time; a finalized one may be read by any.
class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {});

  // Finds or makes what is left open, builds a saver with defer_build that nobody has built, and finalizes the graph;
  // the second time for the same graph only the latter.
  // FailedPreconditionError: it was done for another graph; "More than one item" in a collection.
  void finalize(Graph& graph);

  // What was passed; of the rest nothing until it is finalized.
  OpList init_op() const;
  const Feeds& init_feed_dict() const { return options_.init_feed_dict; }
  InitFn init_fn() const;  // the program's, bound to this scaffold, which must outlive it; empty: none
  Output ready_op() const;
  Output ready_for_local_init_op() const;
  OpList local_init_op() const;
  bool initialize_missing() const { return options_.initialize_missing; }
  Output summary_op() const;
  std::shared_ptr<Saver> saver() const;

 private:
  void fill_in(Graph& graph);

  ScaffoldOptions options_;       // with what finalize() filled in
  const Graph* graph_ = nullptr;  // that it is finalized for
};

}  // namespace longhaul
