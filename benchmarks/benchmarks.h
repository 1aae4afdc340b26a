#pragma once

#include <vector>

#include "benchmarks/bench.h"

// The functions that add rows, one for each file NAME_bench.cc; all_rows() in all_rows.cc calls them in the table's
// order.
namespace longhaul::bench {

void add_bound_rows(std::vector<Row>& rows);
void add_cluster_recovery_rows(std::vector<Row>& rows);
void add_cluster_rows(std::vector<Row>& rows);
void add_cluster_saves_rows(std::vector<Row>& rows);
void add_data_rows(std::vector<Row>& rows);
void add_events_rows(std::vector<Row>& rows);
void add_monitored_rows(std::vector<Row>& rows);
void add_pipeline_rows(std::vector<Row>& rows);
void add_queue_rows(std::vector<Row>& rows);
void add_restore_rows(std::vector<Row>& rows);
void add_save_rows(std::vector<Row>& rows);
void add_snapshot_rows(std::vector<Row>& rows);
void add_startup_rows(std::vector<Row>& rows);
void add_status_rows(std::vector<Row>& rows);
void add_supervisor_rows(std::vector<Row>& rows);
void add_threads_rows(std::vector<Row>& rows);
void add_training_rows(std::vector<Row>& rows);

std::vector<Row> all_rows();

}  // namespace longhaul::bench
