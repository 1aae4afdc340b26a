#include "benchmarks/benchmarks.h"

namespace longhaul::bench {

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_training_rows(rows);
  add_threads_rows(rows);
  add_supervisor_rows(rows);
  add_snapshot_rows(rows);
  add_monitored_rows(rows);
  add_status_rows(rows);
  add_cluster_rows(rows);
  add_cluster_saves_rows(rows);
  add_cluster_recovery_rows(rows);
  add_bound_rows(rows);
  add_startup_rows(rows);
  add_restore_rows(rows);
  add_save_rows(rows);
  add_data_rows(rows);
  add_queue_rows(rows);
  add_pipeline_rows(rows);
  add_events_rows(rows);
  return rows;
}

}  // namespace longhaul::bench
