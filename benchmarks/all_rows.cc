#include "benchmarks/benchmarks.h"

namespace longhaul::bench {

std::vector<Row> all_rows() {
  std::vector<Row> rows;
  add_data_rows(rows);
  add_events_rows(rows);
  return rows;
}

}  // namespace longhaul::bench
