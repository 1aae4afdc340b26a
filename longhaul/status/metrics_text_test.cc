#include "longhaul/status/metrics_text.h"

#include <gmock/gmock.h>

#include <limits>

namespace longhaul {
namespace {

TEST(MetricsText, IsThatOfPrometheus) {
  MetricsText text;
  text.family("longhaul_step", "gauge", "The global step.").sample(1200);
  text.family("longhaul_scalar", "gauge", "Values.").sample(0.25, {{"tag", "loss"}}).sample(1e300, {{"tag", "big"}});
  EXPECT_EQ(text.take(),
            "# HELP longhaul_step The global step.\n# TYPE longhaul_step gauge\nlonghaul_step 1200\n"
            "# HELP longhaul_scalar Values.\n# TYPE longhaul_scalar gauge\nlonghaul_scalar{tag=\"loss\"} 0.25\n"
            "longhaul_scalar{tag=\"big\"} 1e+300\n");
}

TEST(MetricsText, EscapesLabelsAndHelp) {
  MetricsText text;
  text.family("a", "gauge", "back\\slash\nline \"quote\"").sample(1, {{"tag", "x\"} 1\ny\\"}, {"other", ""}});
  EXPECT_EQ(text.take(),
            "# HELP a back\\\\slash\\nline \"quote\"\n# TYPE a gauge\na{tag=\"x\\\"} 1\\ny\\\\\",other=\"\"} 1\n");
}

TEST(MetricsText, NumbersThatAreNoneHaveTheirNames) {
  MetricsText text;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  text.family("a", "gauge", "").sample(std::numeric_limits<double>::quiet_NaN()).sample(kInfinity).sample(-kInfinity);
  EXPECT_EQ(text.take(), "# HELP a \n# TYPE a gauge\na NaN\na +Inf\na -Inf\n");
}

}  // namespace
}  // namespace longhaul
