#include "longhaul/host/parsing/example.h"

#include <fmt/format.h>

#include <span>
#include <string_view>
#include <unordered_map>

#include "longhaul/host/parsing/feature_column.h"
#include "longhaul/proto/wire_reader.h"

namespace longhaul {
namespace {

class ExampleParser {
 public:
  explicit ExampleParser(const ExampleSpec& spec) : num_sparse_(spec.sparse.size()) {
    columns_.reserve(spec.sparse.size() + spec.dense.size());
    for (const ExampleSpec::Sparse& wanted : spec.sparse) columns_.emplace_back(wanted);
    for (const ExampleSpec::Dense& wanted : spec.dense) columns_.emplace_back(wanted);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!by_key_.emplace(columns_[i].key(), i).second)
        throw InvalidArgumentError(fmt::format("feature {} is listed twice", columns_[i].key()));
    }
  }

  // `name`: a function that gives the example's name, for messages.
  template <typename Name>
  void add(std::string_view example, const Name& name) {
    features_.assign(columns_.size(), {});
    if (!find_features(example)) {
      throw InvalidArgumentError(fmt::format("{}: could not parse the serialized Example", name()));
    }
    for (size_t i = 0; i < columns_.size(); ++i) {
      try {
        columns_[i].add(features_[i]);
      } catch (const InvalidArgumentError& error) {
        throw InvalidArgumentError(fmt::format("{}: feature {}: {}", name(), columns_[i].key(), error.what()));
      }
    }
  }

  ParsedExamples take(bool single) {
    ParsedExamples parsed;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i < num_sparse_) {
        parsed.sparse.push_back(columns_[i].take_sparse(single));
      } else {
        parsed.dense.push_back(columns_[i].take_dense(single));
      }
    }
    return parsed;
  }

 private:
  // Notes where the wanted features of an Example are.
  bool find_features(std::string_view example) {
    return for_each_field(example, 1, [&](std::string_view features) {
      return for_each_field(features, 1, [&](std::string_view entry) { return note(entry); });
    });
  }

  // An entry of the map: field 1 is the key, field 2 the feature. The last one of a key counts.
  bool note(std::string_view entry) {
    std::string_view key, feature;
    uint32_t field, type;
    for (WireReader reader(entry); !reader.done();) {
      if (!reader.take_tag(field, type)) return false;
      const bool known = (field == 1 || field == 2) && type == WireReader::kBytes;
      if (!(known ? reader.take_bytes(field == 1 ? key : feature) : reader.skip(type))) return false;
    }
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) features_[found->second] = feature;
    return true;
  }

  const size_t num_sparse_;
  std::vector<FeatureColumn> columns_;  // the sparse ones first
  std::unordered_map<std::string_view, size_t> by_key_;
  std::vector<std::string_view> features_;  // of the example under way, for each column; empty: missing
};

}  // namespace

ParsedExamples parse_examples(const Tensor& serialized, const Tensor& names, const ExampleSpec& spec) {
  const auto examples = serialized.flat<std::string>();
  const auto given = names.defined() ? names.flat<std::string>() : std::span<const std::string>();
  if (!given.empty() && given.size() != examples.size()) {
    throw InvalidArgumentError(fmt::format("{} names were given for {} examples", given.size(), examples.size()));
  }
  ExampleParser parser(spec);
  for (size_t i = 0; i < examples.size(); ++i) {
    parser.add(examples[i],
               [&] { return given.empty() ? fmt::format("example {}", i) : fmt::format("example {}", given[i]); });
  }
  return parser.take(/*single=*/false);
}

ParsedExamples parse_single_example(const std::string& serialized, const ExampleSpec& spec) {
  ExampleParser parser(spec);
  parser.add(serialized, [] { return std::string("the example"); });
  return parser.take(/*single=*/true);
}

}  // namespace longhaul
