// The guide's two tables of signals say what longhaul/train/signals/used_signals.h does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "longhaul/io/files/file.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/used_signals.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using Names = std::set<std::string>;

const std::string kAllSignals = "| signal | `Preemption` | `StopSignals` | neither |";
const std::string kOptions = "| signal (`PreemptionOptions`) | what it does |";

std::string name_of(int signal) {
  return std::string("SIG") + sigabbrev_np(signal);
}

Names names_of(const std::vector<int>& signals) {
  Names names;
  for (const int signal : signals) names.insert(name_of(signal));
  return names;
}

Names names_in(const std::string& text) {
  Names names;
  for (size_t at = text.find("SIG"); at != text.npos; at = text.find("SIG", at + 1)) {
    const size_t end = text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", at);
    names.insert(text.substr(at, end - at));
  }
  return names;
}

// One row; a bar within a cell is written \|.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells{""};
  for (size_t i = 1; i < line.size(); ++i) {
    const bool is_bar = line[i] == '|' && line[i - 1] != '\\';
    if (is_bar) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

// The rows of the table with this heading.
std::vector<std::vector<std::string>> table_of(const std::string& heading) {
  std::istringstream guide(read_file(FileSystem::real(), LONGHAUL_GUIDE));
  std::vector<std::vector<std::string>> rows;
  bool is_in_table = false;
  for (std::string line; std::getline(guide, line);) {
    if (line == heading) is_in_table = true;
    if (is_in_table && !line.starts_with("|")) break;
    if (is_in_table && line != heading && !line.starts_with("| ---")) rows.push_back(cells_of(line));
  }
  return rows;
}

// What the row of such signals says a training with a Preemption does.
const std::map<SignalUse, std::string> kWords{
    {SignalUse::kInterrupt, "stop with a checkpoint, status 0"},
    {SignalUse::kTerminate, "stop with a checkpoint, status 75"},
    {SignalUse::kHangUp, "like SIGTERM, but it does not count as a first signal"},
    {SignalUse::kWarn, "like SIGTERM"},
    {SignalUse::kSave, "a checkpoint is taken, and training continues"},
    {SignalUse::kFailedWrite, "the write fails"},
    {SignalUse::kCrash, "recorded next to the journal"},
};

class SignalsOfTheGuide : public ::testing::Test {
 protected:
  const std::vector<std::vector<std::string>> all_ = table_of(kAllSignals), options_ = table_of(kOptions);

  // The row that has the signal in its first cell; there is one.
  std::vector<std::string> row_of(int signal) const {
    const auto has = [&](const auto& row) { return names_in(row[0]).contains(name_of(signal)); };
    EXPECT_EQ(std::count_if(all_.begin(), all_.end(), has), 1) << name_of(signal);
    const auto found = std::find_if(all_.begin(), all_.end(), has);
    return found == all_.end() ? std::vector<std::string>(5) : *found;
  }
  Names of_option(const std::string& option) const {
    for (const auto& row : options_) {
      if (row[0].find("`" + option + "`") != std::string::npos) return names_in(row[0]);
    }
    return {};
  }
};

TEST_F(SignalsOfTheGuide, AreAllThatTheLibraryUsesAndNoOther) {
  Names used, named;
  for (const UsedSignal& signal : kUsedSignals) used.insert(name_of(signal.number));
  for (const auto& row : all_) {
    if (row[0].find("all others") == std::string::npos) named.merge(names_in(row[0]));
  }
  EXPECT_EQ(named, used);
}

TEST_F(SignalsOfTheGuide, DoWhatTheLibraryDoes) {
  for (const UsedSignal& signal : kUsedSignals) {
    ASSERT_TRUE(kWords.contains(signal.use)) << name_of(signal.number);
    EXPECT_THAT(row_of(signal.number)[1], HasSubstr(kWords.at(signal.use))) << name_of(signal.number);
  }
}

TEST_F(SignalsOfTheGuide, StopATrainingThatHasStopSignalsIfTheseTakeThem) {
  const Names stopping = names_of(stopping_signals());
  const Names for_preemption_alone = names_of(signals_for({SignalUse::kWarn, SignalUse::kSave}));
  for (const UsedSignal& signal : kUsedSignals) {
    const std::string name = name_of(signal.number);
    EXPECT_EQ(row_of(signal.number)[2] == " ends ", for_preemption_alone.contains(name)) << name;
    EXPECT_FALSE(stopping.contains(name) && for_preemption_alone.contains(name)) << name;
  }
}

TEST_F(SignalsOfTheGuide, AreTheDefaultsOfPreemptionOptions) {
  const PreemptionOptions defaults;
  EXPECT_EQ(of_option("stop_signals"), names_of(defaults.stop_signals));
  EXPECT_EQ(of_option("interrupt_signals"), names_of(defaults.interrupt_signals));
  EXPECT_EQ(of_option("save_signals"), names_of(defaults.save_signals));
}

}  // namespace
}  // namespace longhaul
