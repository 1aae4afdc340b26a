#include "longhaul/train/sessions/scaffold.h"

namespace longhaul {
namespace {

template <typename T>
void take_if_open(Defaulted<T>& setting, const Defaulted<T>& other) {
  if (setting.is_default()) setting = other;
}

void take_what_is_open(ScaffoldOptions& options, const ScaffoldOptions& other) {
  take_if_open(options.init_op, other.init_op);
  if (options.init_feed_dict.empty()) options.init_feed_dict = other.init_feed_dict;
  if (!options.init_fn) options.init_fn = other.init_fn;
  take_if_open(options.ready_op, other.ready_op);
  take_if_open(options.ready_for_local_init_op, other.ready_for_local_init_op);
  take_if_open(options.local_init_op, other.local_init_op);
  take_if_open(options.summary_op, other.summary_op);
  take_if_open(options.saver, other.saver);
}

template <typename T>
T value_of(const Defaulted<T>& setting) {
  return setting.has_value() ? setting.value() : T();
}

Defaulted<Output> filled_in(const Output& output) {
  return output.valid() ? Defaulted<Output>(output) : kNone;
}

Defaulted<OpList> filled_in(const OpList& ops) {
  return ops.empty() ? kNone : Defaulted<OpList>(ops);
}

}  // namespace

Scaffold::Scaffold(ScaffoldOptions options) : options_(std::move(options)) {
  if (options_.copy_from != nullptr) take_what_is_open(options_, options_.copy_from->options_);
  options_.copy_from = nullptr;
}

void Scaffold::finalize(Graph& graph) {
  if (graph_ != nullptr && graph_ != &graph) {
    throw FailedPreconditionError("this scaffold is finalized for another graph: make one scaffold for each graph");
  }
  if (graph_ == nullptr) fill_in(graph);
  graph.finalize();
}

void Scaffold::fill_in(Graph& graph) {
  if (options_.local_init_op.is_none()) take_if_open<Output>(options_.ready_for_local_init_op, kNone);
  const GraphDefaults found = resolve_defaults(
      graph,
      {.ready_op = options_.ready_op,
       .ready_for_local_init_op = options_.ready_for_local_init_op,
       .init_op = options_.init_op,
       .local_init_op = options_.local_init_op,
       .saver = options_.saver,
       .summary_op = options_.summary_op,
       .global_step = kNone},
      {.several = Several::kRefuse,
       .waits_for_globals = true,
       .saver = {.sharded = true, .allow_empty = true, .files = options_.files, .clock = options_.clock}});
  options_.ready_op = filled_in(found.ready_op);
  options_.ready_for_local_init_op = filled_in(found.ready_for_local_init_op);
  options_.init_op = filled_in(found.init_op);
  options_.local_init_op = filled_in(found.local_init_op);
  options_.summary_op = filled_in(found.summary_op);
  if (found.saver) {
    found.saver->ensure_built();
    options_.saver = MaybeOwned<Saver>(found.saver);
  }
  graph_ = &graph;
}

OpList Scaffold::init_op() const {
  return value_of(options_.init_op);
}

InitFn Scaffold::init_fn() const {
  if (!options_.init_fn) return {};
  return [this](Session& session) { options_.init_fn(*this, session); };
}

Output Scaffold::ready_op() const {
  return value_of(options_.ready_op);
}

Output Scaffold::ready_for_local_init_op() const {
  return value_of(options_.ready_for_local_init_op);
}

OpList Scaffold::local_init_op() const {
  return value_of(options_.local_init_op);
}

Output Scaffold::summary_op() const {
  return value_of(options_.summary_op);
}

std::shared_ptr<Saver> Scaffold::saver() const {
  return options_.saver.has_value() ? options_.saver.value().pointer() : nullptr;
}

}  // namespace longhaul
