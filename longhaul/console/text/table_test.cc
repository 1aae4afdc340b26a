#include "longhaul/console/text/table.h"

#include <gmock/gmock.h>

#include <sstream>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/times.h"

namespace longhaul::console {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Table a_table() {
  Table table({{"name"}, {"size", Align::kRight}, {""}});
  table.add({"w", "12 MB", ""});
  table.add({Cell("layers/embedding/weights", Paint::kRed), "1 kB", "pinned"});
  return table;
}

size_t widest_line(const std::string& text) {
  size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
}

TEST(TableTest, AlignsAndTrims) {
  EXPECT_EQ(a_table().text({}),
            "name                       size\n"
            "w                         12 MB\n"
            "layers/embedding/weights   1 kB  pinned\n");
}

TEST(TableTest, CutsNamesWhereTheTerminalIsNarrow) {
  const Terminal narrow{.is_terminal = true, .columns = 34};
  EXPECT_EQ(widest_line(a_table().text(narrow)), 34u);
  EXPECT_THAT(a_table().text(narrow), HasSubstr("layers/e.../weights"));
}

TEST(TableTest, BecomesBlocksWhereEvenShortNamesDoNotFit) {
  const std::string text = a_table().text({.is_terminal = true, .columns = 24});
  EXPECT_LE(widest_line(text), 24u);
  EXPECT_THAT(text, HasSubstr("w\n  size: 12 MB\n"));
}

TEST(TableTest, HasColoursOnlyWhereTheyAreWanted) {
  EXPECT_THAT(a_table().text({}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(a_table().text({.is_terminal = true, .columns = 80, .has_colours = true}), HasSubstr("\x1b[31mlayers"));
}

TEST(TableTest, AHostileNameStaysInItsCell) {
  Table table({{"name"}, {"size"}});
  table.add({"a\x1b[2J\nb", "1"});
  EXPECT_EQ(table.text({}), "name           size\na\\x1b[2J\\x0ab  1\n");
}

TEST(ReportTest, IsValidJsonWhateverIsInIt) {
  Json json = json_of("show");
  json["na\xff"] = "\xc3(\n\x1b";
  json["mean"] = std::nan("");
  const std::string text = json_text(json);
  EXPECT_THAT(text, HasSubstr(R"("format": 1)"));
  const Json again = Json::parse(text);
  EXPECT_TRUE(again["mean"].is_null());
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

TEST(TimesTest, SayWhichTimeItIs) {
  EXPECT_EQ(utc_text(1763721934.25), "2025-11-21 10:45:34 UTC");
  EXPECT_EQ(utc_text(-1), "-");
  EXPECT_EQ(utc_text(1e300), "-");
  EXPECT_EQ(utc_text(std::nan("")), "-");
  EXPECT_EQ(age_text(100, 285), "3 min 5 s ago");
  EXPECT_EQ(age_text(300, 285), "15 s in the future, by this machine's clock");
  EXPECT_EQ(duration_text(Seconds{3 * 3600 + 12 * 60}), "3 h 12 min");
  EXPECT_EQ(duration_text(Seconds{1e300}), "-");
}

}  // namespace
}  // namespace longhaul::console
