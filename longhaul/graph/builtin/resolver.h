#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "longhaul/graph/op_catalog.h"

// Shared by the resolvers of the built-in types. A resolver checks a call and determines its results; each file in this
// folder has the resolvers of one family. Their kernels are in the host and runtime layers.
namespace longhaul::builtin {

using Result = OpInfo::Result;
using Resolve = OpInfo (*)(const OperationSpec&);
using ResolverTable = std::vector<std::pair<std::string, Resolve>>;

// Throws an InvalidArgumentError that names the operation and its type.
[[noreturn]] void refuse(const OperationSpec& spec, const std::string& why);

template <typename T>
const T* find_attr(const OperationSpec& spec, const std::string& name) {
  const auto it = spec.attrs.find(name);
  if (it == spec.attrs.end()) return nullptr;
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) refuse(spec, "attr " + name + " has the wrong type");
  return value;
}

template <typename T>
const T& need_attr(const OperationSpec& spec, const std::string& name) {
  const T* value = find_attr<T>(spec, name);
  if (value == nullptr) refuse(spec, "attr " + name + " is missing");
  return *value;
}

void need_inputs(const OperationSpec& spec, size_t count);
void need_dtype(const OperationSpec& spec, size_t input, DType dtype);
void need_index(const OperationSpec& spec, size_t input);  // int32 or int64
// Requires that the first `count` inputs are variables.
void need_variables(const OperationSpec& spec, size_t count);
// ... and distinct ones: an operation locks all that it changes.
void need_distinct(const OperationSpec& spec, size_t count);
// Requires that the input is a resource of one of these types ("FIFOQueueV2", ...); `what` is for the message ("a
// queue").
void need_resource(const OperationSpec& spec, size_t input, const std::vector<std::string>& types,
                   const std::string& what);
void need_same(const OperationSpec& spec, const Output& variable, const Output& value);

inline Result like(const Output& output) {
  return {output.dtype(), output.shape()};
}

// The results of an operation that is a handle on a resource; the operation itself is never run.
inline OpInfo resource_handle() {
  return {{{kResource, {}}}, kIsResource};
}

ResolverTable accumulator_ops();
ResolverTable array_ops();
ResolverTable function_ops();
ResolverTable image_ops();
ResolverTable input_ops();
ResolverTable lookup_ops();
ResolverTable optimizer_ops();
ResolverTable parsing_ops();
ResolverTable queue_ops();
ResolverTable random_ops();
ResolverTable reader_ops();
ResolverTable state_ops();
ResolverTable summary_ops();
ResolverTable sync_token_ops();
ResolverTable transfer_ops();

}  // namespace longhaul::builtin
