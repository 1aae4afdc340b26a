// What a Saver says of itself and its graph: the meta graph, beside each checkpoint and elsewhere.
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/graph/graph_def/graph_def.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/ops/input/data_position.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/train/saved_state/environment_record.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

// With which it saves, and to which it compares what it restores.
Environment Saver::environment() const {
  Environment facts = environment_of(graph_fingerprint_);
  facts.merge(ops::input_facts(*graph_));
  return facts;
}

std::string Saver::serialized_meta_graph() const {
  proto::MetaGraphDef meta_graph = export_meta_graph();
  Environment facts = environment();
  facts.merge(nan_.record());
  record_environment(facts, &meta_graph);
  return proto::serialize(meta_graph);
}

// Without a checkpoint: there are no variables.
void Saver::write_meta_graph(const std::string& prefix, const SaveOptions& options) const {
  if (!options.write_meta_graph) return;
  check_directory_owner(*options_.files, prefix);
  write_file_atomically(*options_.files, meta_graph_filename(prefix, options.meta_graph_suffix),
                        serialized_meta_graph());
}

proto::SaverDef Saver::to_proto() const {
  check_built();
  proto::SaverDef def;
  if (!nodes_.tensors.empty()) {
    def.set_filename_tensor_name(nodes_.filename.name());
    def.set_save_tensor_name(nodes_.save.name());
    def.set_restore_op_name(nodes_.restore.name());
  }
  def.set_max_to_keep(options_.max_to_keep);
  def.set_keep_checkpoint_every_n_hours(static_cast<float>(options_.keep_checkpoint_every_n_hours));
  def.set_sharded(options_.sharded || nodes_.sharded);
  def.set_version(proto::SaverDef::V2);
  return def;
}

proto::MetaGraphDef Saver::export_meta_graph() const {
  const proto::SaverDef def = to_proto();
  return to_meta_graph_def(*graph_, &def);
}

proto::MetaGraphDef Saver::export_meta_graph(const std::string& path) const {
  proto::MetaGraphDef meta = export_meta_graph();
  write_file_atomically(*options_.files, path, proto::serialize(meta));
  return meta;
}

}  // namespace longhaul
