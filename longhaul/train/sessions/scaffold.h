#pragma once

#include <functional>
#include <memory>

#include "longhaul/train/sessions/graph_defaults.h"

namespace longhaul {

class Scaffold;

// An option that is kUseDefault takes its value from the graph's collection of that name ("ready_op", "init_op", ...),
// which may have only one element. If the collection is empty, the operation described here is created and added to it.
// kNone switches the feature off.
struct ScaffoldOptions {
  Defaulted<OpList> init_op{};                               // initialises all global variables
  Feeds init_feed_dict{};                                    // for init_op
  std::function<void(const Scaffold&, Session&)> init_fn{};  // called after init_op; not called for a restored model
  Defaulted<Output> ready_op{};                              // names of all variables that are not initialised
  Defaulted<Output> ready_for_local_init_op{};               // the same, of the global ones
  Defaulted<OpList> local_init_op{};                         // initialises local variables and tables
  Defaulted<Output> summary_op{};                            // all summaries of the graph, merged
  Defaulted<MaybeOwned<Saver>> saver{};                      // of all global variables, sharded
  const Scaffold* copy_from = nullptr;                       // supplies options left open here, if set there
  FileSystem* files = &FileSystem::real();                   // of a saver made here
  Clock* clock = &Clock::real();
};

// The operations that make sessions of a graph ready, and the graph's saver. The program passes some of them;
// finalize() adds defaults for the rest to the graph.
//
//   open --finalize--> finalized
//
// One thread at a time may call; once finalized, any thread may read.
class Scaffold {
 public:
  explicit Scaffold(ScaffoldOptions options = {});

  // Finds or creates everything that is left open, builds the saver if that was deferred (defer_build), and finalizes
  // the graph. A second call for the same graph only finalizes the graph. FailedPreconditionError: an earlier call was
  // for another graph; a collection has "More than one item".
  void finalize(Graph& graph);

  // The values that were passed; the rest are empty until it is finalized.
  OpList init_op() const;
  const Feeds& init_feed_dict() const { return options_.init_feed_dict; }
  InitFn init_fn() const;  // the program's, bound to this scaffold, which must outlive it; empty: none
  Output ready_op() const;
  Output ready_for_local_init_op() const;
  OpList local_init_op() const;
  Output summary_op() const;
  std::shared_ptr<Saver> saver() const;

 private:
  void fill_in(Graph& graph);

  ScaffoldOptions options_;       // with what finalize() filled in
  const Graph* graph_ = nullptr;  // the graph of finalize()
};

}  // namespace longhaul
