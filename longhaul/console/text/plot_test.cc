#include "longhaul/console/text/plot.h"

#include <gmock/gmock.h>

#include <cmath>

namespace longhaul::console {
namespace {

TEST(PlotTest, AHistogramHasALineForEachRange) {
  EXPECT_EQ(histogram_text(-1, 1, {1, 4, 0, 2}, {.is_terminal = true, .columns = 20}),
            "  -1  1  ###\n"
            "-0.5  4  ###########\n"
            "   0  0\n"
            " 0.5  2  ######\n");
}

TEST(PlotTest, ARangeMayBeWiderThanADouble) {
  constexpr double kMost = 1.7e308;
  EXPECT_EQ(histogram_text(-kMost, kMost, {1, 0, 0, 2}, {.is_terminal = true, .columns = 24}),
            "-1.7e+308  1  #####\n"
            "-8.5e+307  0\n"
            "        0  0\n"
            " 8.5e+307  2  ##########\n");
  EXPECT_EQ(plot_text({{0, -kMost}, {1, 0}, {2, kMost}}, 3, {.is_terminal = true, .columns = 20}),
            " 1.7e+308 |        *\n"
            "          |     *\n"
            "-1.7e+308 | *\n"
            "            0      2\n");
}

TEST(PlotTest, ABarHasEighthsWhereTheTerminalShowsThem) {
  EXPECT_EQ(bar_text(0.5, 4, {}), "##");
  EXPECT_EQ(bar_text(0.001, 4, {}), "#") << "little is not nothing";
  EXPECT_EQ(bar_text(0, 4, {}), "");
  EXPECT_EQ(bar_text(std::nan(""), 4, {}), "");
  EXPECT_EQ(bar_text(7, 4, {}), "####");
  EXPECT_EQ(bar_text(0.625, 2, {.has_blocks = true}), "█▎");
}

TEST(PlotTest, APlotHasItsLimits) {
  EXPECT_EQ(plot_text({{0, 4}, {1, 3}, {2, 2}, {3, 1}}, 4, {.is_terminal = true, .columns = 12}),
            "4 | *\n"
            "  |   *\n"
            "  |      *\n"
            "1 |        *\n"
            "    0      3\n");
}

TEST(PlotTest, LeavesOutWhatIsNoNumber) {
  EXPECT_EQ(plot_text({{0, NAN}, {1, INFINITY}}, 4, {}), "");
  EXPECT_NE(plot_text({{0, NAN}, {1, 2}}, 4, {}), "");
  EXPECT_EQ(plot_text({}, 4, {}), "");
}

}  // namespace
}  // namespace longhaul::console
