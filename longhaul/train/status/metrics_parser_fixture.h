#pragma once

#include <map>
#include <string>
#include <vector>

namespace longhaul {

struct ParsedMetric {
  std::string help, type;
  std::map<std::map<std::string, std::string>, double> samples;  // by labels

  double value() const;  // of the only sample
};

// Reads Prometheus's text format, version 0.0.4, as strictly as it is written down: each family has HELP and TYPE
// before its samples and stands in one piece, names and labels have their letters, values are numbers, no sample occurs
// twice, the last line ends. Also the conventions: counters end in _total, others do not; units are base units. Each
// violation fails the test.
std::map<std::string, ParsedMetric> parse_metrics(const std::string& text);

}  // namespace longhaul
