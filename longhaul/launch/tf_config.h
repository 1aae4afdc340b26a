#pragma once

#include <string>
#include <string_view>

#include "longhaul/launch/launch_environment.h"
#include "longhaul/launch/launched_task.h"

namespace longhaul {

// The cluster and this process's task as TF_CONFIG has them, which Kubernetes operators and cloud services set:
//
//     {"cluster": {"chief": ["chief0:2222"], "ps": ["ps0:2222"], "worker": ["worker0:2222", "worker1:2222"]},
//      "task": {"type": "worker", "index": 1}}
//
// "rpc_layer" ("grpc"), "session_master" and a map from index to address in place of a list may be there too; other
// names are for other programs and are skipped. Not set, or empty: a process that trains alone. Without a cluster the
// own task may be the chief, worker 0 or the evaluator.
//
// InvalidArgumentError: it is not such a text, or check_launched_task() refuses it; the message names the place. The
// text has at most 1 MiB, and its lists are nested at most 8 deep; a name must not be twice in one object.
LaunchedTask parse_tf_config(std::string_view text);
LaunchedTask task_from_tf_config(const LaunchEnvironment& environment = process_environment());

// The cluster alone, whichever task reads it: that of a TF_CONFIG, or the object that would be in its "cluster":
//
//     {"ps": ["ps0:2222"], "worker": ["worker0:2222", "worker1:2222"]}
//
// InvalidArgumentError, which begins with `source`: it is none of these, or has no job.
ClusterSpec parse_cluster(std::string_view text, const std::string& source);

}  // namespace longhaul
