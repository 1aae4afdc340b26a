#pragma once

#include <string_view>

#include "longhaul/graph/operation.h"
#include "longhaul/proto/attr_value.pb.h"

namespace longhaul {

// An attr as files have it. Numbers with a fraction have the precision of a float there, and a function of the program
// becomes a placeholder.
proto::AttrValue attr_to_proto(const Attr& attr);

// The attr again; what it came from, to_proto gives back byte for byte. A fraction becomes the shortest decimal that is
// that float (0.1, not 0.10000000149). An empty list does not say what it is a list of: `name` tells (dtypes, shapes,
// keys), as TensorFlow names them. InvalidArgumentError: malformed. UnimplementedError: functions, lists of tensors and
// whatever else no operation of ours takes.
Attr attr_from_proto(std::string_view name, const proto::AttrValue& value);

}  // namespace longhaul
