// What most sources of the layers without libtorch include, precompiled: such a file then compiles in half the time.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "longhaul/proto/event.pb.h"
#include "longhaul/proto/meta_graph.pb.h"
