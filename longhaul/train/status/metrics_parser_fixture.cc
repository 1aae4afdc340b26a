#include "longhaul/train/status/metrics_parser_fixture.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>
#include <sstream>

namespace longhaul {
namespace {

// Takes {tag="a\"b",...} off the text.
std::map<std::string, std::string> take_labels(std::string& text, const std::string& line) {
  std::map<std::string, std::string> labels;
  if (text.empty() || text[0] != '{') return labels;
  text.erase(0, 1);
  while (!text.empty() && text[0] != '}') {
    std::smatch name;
    if (!std::regex_search(text, name, std::regex("^([a-zA-Z_][a-zA-Z0-9_]*)=\""))) {
      ADD_FAILURE() << "no label: " << line;
      return labels;
    }
    const std::string key = name[1];
    text.erase(0, name.length());
    std::string value;
    while (!text.empty() && text[0] != '"') {
      char c = text[0];
      text.erase(0, 1);
      if (c == '\\') {
        EXPECT_FALSE(text.empty()) << line;
        EXPECT_TRUE(text[0] == 'n' || text[0] == '"' || text[0] == '\\') << "no such escape: " << line;
        c = text[0] == 'n' ? '\n' : text[0];
        text.erase(0, 1);
      }
      value += c;
    }
    EXPECT_FALSE(text.empty()) << "a label does not end: " << line;
    text.erase(0, 1);
    EXPECT_TRUE(labels.emplace(key, value).second) << "a label twice: " << line;
    if (!text.empty() && text[0] == ',') text.erase(0, 1);
  }
  EXPECT_FALSE(text.empty()) << line;
  text.erase(0, 1);
  return labels;
}

double parse_value(const std::string& text, const std::string& line) {
  if (text == "NaN") return std::nan("");
  if (text == "+Inf") return HUGE_VAL;
  if (text == "-Inf") return -HUGE_VAL;
  EXPECT_TRUE(std::regex_match(text, std::regex(R"(-?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?)"))) << "no number: " << line;
  return std::atof(text.c_str());
}

void check_name(const std::string& name, const std::string& type) {
  EXPECT_TRUE(std::regex_match(name, std::regex("[a-z][a-z0-9_]*"))) << name;
  EXPECT_EQ(name.rfind("longhaul_", 0), 0u) << name;
  EXPECT_TRUE(type == "counter" || type == "gauge") << name << " is a " << type;
  EXPECT_EQ(name.ends_with("_total"), type == "counter") << name << " is a " << type;
  for (const char* unit : {"_ms", "_millis", "_minutes", "_hours", "_percent", "_kb", "_mb"}) {
    EXPECT_FALSE(name.ends_with(unit)) << name << ": not a base unit";
  }
}

}  // namespace

double ParsedMetric::value() const {
  EXPECT_EQ(samples.size(), 1u);
  return samples.empty() ? std::nan("") : samples.begin()->second;
}

std::map<std::string, ParsedMetric> parse_metrics(const std::string& text) {
  std::map<std::string, ParsedMetric> all;
  EXPECT_TRUE(text.ends_with('\n')) << "the last line does not end";
  std::istringstream lines(text);
  std::string line, current, helped;
  while (std::getline(lines, line)) {
    std::smatch parts;
    if (std::regex_match(line, parts, std::regex("# HELP ([^ ]+) (.+)"))) {
      helped = parts[1];
      EXPECT_TRUE(all.emplace(helped, ParsedMetric{.help = parts[2]}).second) << "a family in two pieces: " << line;
    } else if (std::regex_match(line, parts, std::regex("# TYPE ([^ ]+) ([a-z]+)"))) {
      current = parts[1];
      EXPECT_EQ(current, helped) << "TYPE without HELP: " << line;
      all[current].type = parts[2];
      check_name(current, parts[2]);
    } else if (std::regex_search(line, parts, std::regex("^[a-zA-Z_:][a-zA-Z0-9_:]*"))) {
      EXPECT_EQ(parts[0], current) << "a sample outside its family: " << line;
      std::string rest = line.substr(static_cast<size_t>(parts.length()));
      const auto labels = take_labels(rest, line);
      EXPECT_TRUE(rest.starts_with(' ')) << line;
      const double value = parse_value(rest.substr(std::min<size_t>(1, rest.size())), line);
      EXPECT_TRUE(all[current].samples.emplace(labels, value).second) << "a sample twice: " << line;
    } else {
      ADD_FAILURE() << "neither a comment nor a sample: " << line;
    }
  }
  for (const auto& [name, metric] : all) EXPECT_FALSE(metric.samples.empty()) << name << " has no sample";
  return all;
}

}  // namespace longhaul
