// Compiles and runs what docs/coming_from_tensorflow.md says stands for TensorFlow's names. tensorflow_names.sh holds
// that each piece of C++ in the page's tables is here, word for word. A function for each table.

#include <fmt/format.h>
#include <longhaul/longhaul.h>
#include <longhaul/proto/config.pb.h>
#include <longhaul/proto/example.pb.h>
#include <longhaul/proto/graph.pb.h>
#include <longhaul/server.h>
#include <longhaul/testing.h>
#include <longhaul/torch.h>
#include <torch/nn/modules/loss.h>
#include <torch/nn/modules/rnn.h>
#include <torch/utils.h>

using namespace longhaul;

namespace {

// What is only named.
template <typename... T>
void use(const T&...) {}

// Collects what a table's functions have added to the graph, and runs each of it.
class Added {
 public:
  template <typename... T>
  void operator()(const T&... added) {
    (add(added), ...);
  }
  void run(Graph& graph) const {
    const auto session = new_session("", graph);
    session->run({ops::global_variables_initializer(Scope(graph)), ops::local_variables_initializer(Scope(graph)),
                  ops::tables_initializer(Scope(graph))});
    for (const Fetch& fetch : fetches_) session->run(fetch);
    session->close();
  }

 private:
  void add(const Output& output) { fetches_.push_back(output); }
  void add(const Operation& operation) { fetches_.push_back(operation); }
  void add(const std::vector<Output>& outputs) { fetches_.insert(fetches_.end(), outputs.begin(), outputs.end()); }

  std::vector<Fetch> fetches_;
};

void import_written_graph() {
  Graph graph;
  const proto::GraphDef graph_def = read_graph_def(FileSystem::real(), "runs/graph.pbtxt");
  import_graph_def(graph, graph_def);
}

void graphs_and_sessions() {
  Graph graph;
  Scope root(graph);
  graph.set_seed(7);
  auto x = ops::placeholder(root, kFloat, {-1, 4}, "x");
  auto y = ops::placeholder(root, kInt64, {-1}, "y");
  auto loss = ops::cross_entropy_loss(root, ops::dense(root, x, 3, "model"), y);
  const Operation update = GradientDescentOptimizer(0.1).minimize(loss);
  const Output result = ops::identity(root.with_control_dependencies({update}), loss);
  const Operation train_op = result.op();
  graph.add_to_collection("costs", loss);
  use(graph.collection_of<Output>("costs"), collections::kTrainableVariables, collections::kSummaries);
  use(root.colocate_with(loss.op()));
  ClusterSpec cluster({{"ps", {"ps0:2222"}}, {"worker", {"worker0:2222"}}});
  use(root.with_device(replica_device_setter({.cluster = cluster})));
  const auto serve = [&] {
    Server server(cluster, {.job_name = "ps", .task_index = 0});
    use(server.target(), Server::create_local_server());
  };
  use(serve);
  use(root.with_device("/cpu:0"), root.sub("tower"), Graph::default_graph(), ops::no_op(root), ops::identity(root, x));
  use(kFloat, kHalf, kDouble, kBFloat16, kInt32, kInt64, kUInt8, kBool, kString, Shape{-1, 784});
  use(graph.output("x:0"), graph.operation("x"), graph.find_output("x:0"), ops::group(root, {train_op, update}));
  use(ops::placeholder_with_default(root, ops::ones(root, {2}), {2}));
  write_graph(graph, "runs", "graph.pbtxt");
  import_written_graph();
  const SessionOptions config = SessionOptions{.intra_op_parallelism_threads = 2};
  use(ManagedSessionOptions{.config = config});

  const std::unique_ptr<Session> owned = new_session("", graph);
  Session& session = *owned;
  session.run(ops::global_variables_initializer(root));
  const Tensor features(kFloat, {2, 4}), targets = Tensor::of<int64_t>({0, 2});
  session.run(loss, {{x, features}, {y, targets}});
  session.make_callable(train_op, {x, y})(features, targets);
  proto::RunMetadata metadata;
  const Feeds feeds{{x, features}, {y, targets}};
  session.run({train_op, loss}, feeds);
  session.run({train_op, loss}, feeds, RunOptions{.trace_level = TraceLevel::kFullTrace}, &metadata);
}

void variables() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output value = ops::full(root, {4, 3}, 0.1);
  added(ops::assign(root, w, value), ops::assign_add(root, w, value), ops::assign_sub(root, w, value));
  added(ops::full(root, {10}, 0.1), ops::is_variable_initialized(root, w));
  added(ops::ones(root, {10}), ops::zeros(root, {10}), ops::mul(root, ops::randn(root, {4, 3}), 0.02));
  added(ops::uniform(root, {4, 3}, -0.1, 0.1), ops::truncated_normal(root, {4, 3}, 0.02));
  added(ops::variance_scaling(root, {4, 3}, {.scale = 2}), ops::variables_initializer(root, {w.info()}));
  added(ops::report_uninitialized_variables(root, ops::global_variables(graph)));
  use(ops::trainable_variables(graph), ops::local_variables(graph), root.variable_prefix());
  use(ops::global_variables_initializer(root), ops::local_variables_initializer(root), root.variable_scope("model"));
  added.run(graph);
}

void mathematics() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output x = ops::rand(root, {4, 4}), a = ops::rand(root, {4, 4}), b = ops::rand(root, {4, 4});
  const Output logits = ops::matmul(root, x, w);
  added(ops::abs(root, x), ops::add(root, a, b), ops::sub(root, a, b), ops::mul(root, a, b), ops::div(root, a, b));
  added(a + b, ops::sum(root, ops::stack(root, {a, b}), {0}), ops::argmax(root, logits, 1));
  added(ops::aten(root, "aten::cumsum", "sums", {{"self", x}, {"dim", int64_t{1}}}));
  added(ops::eq(root, a, b), ops::ne(root, a, b), ops::exp(root, x), ops::log(root, x));
  added(ops::aten(root, "aten::floor", "floor", {{"self", x}}));
  added(ops::aten(root, "aten::round", "round", {{"self", x}}), ops::aten(root, "aten::log1p", "log1p", {{"self", x}}));
  added(ops::gt(root, a, b), ops::ge(root, a, b), ops::lt(root, a, b), ops::le(root, a, b));
  added(ops::aten(root, "aten::logical_and", "both", {{"self", a}, {"other", b}}));
  added(ops::aten(root, "aten::logical_or", "either", {{"self", a}, {"other", b}}));
  added(ops::logical_not(root, ops::eq(root, a, b)), ops::maximum(root, a, b), ops::minimum(root, a, b));
  added(ops::aten(root, "aten::remainder.Tensor", "mod", {{"self", a}, {"other", b}}), ops::global_norm(root, {x}));
  added(ops::pow(root, x, 3), ops::square(root, x), ops::sqrt(root, x), ops::rsqrt(root, x));
  added(ops::randn(root, {64, 4}), ops::uniform(root, {64, 4}, -1, 1), ops::truncated_normal(root, {4, 3}, 0.1));
  added(ops::aten(root, "aten::all", "all", {{"self", ops::eq(root, a, b)}}));
  added(ops::max(root, x, {1}), ops::min(root, x, {1}), ops::mean(root, x), ops::sum(root, x, {1}, true));
  added(ops::sigmoid(root, x), ops::tanh(root, x));
  added.run(graph);
}

void arrays() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Output x = ops::rand(root, {4, 4}), a = ops::rand(root, {4, 4}), b = ops::rand(root, {4, 4});
  const Output labels = ops::constant(root, Tensor::of<int64_t>({0, 1, 2, 0}));
  const Output keep = ops::constant(root, Tensor::of<bool>({true, false, false, true}));
  added(ops::mask_rows(root, x, keep), ops::cast(root, x, kInt64), ops::concat(root, {a, b}, 1));
  added(ops::constant(root, 3.0f), ops::constant(root, Tensor::of<float>({1, 2})), ops::unsqueeze(root, x, 0));
  added(ops::full(root, {2, 3}, 7.0), ops::index_select(root, x, 0, labels));
  added(ops::gather(root, x, 1, ops::unsqueeze(root, labels, 1)));
  added(ops::aten(root, "aten::one_hot", "one_hot", {{"self", labels}, {"num_classes", int64_t{3}}}));
  added(ops::ones(root, {2, 3}), ops::zeros(root, {2, 3}), ops::aten(root, "aten::ones_like", "ones", {{"self", x}}));
  added(ops::aten(root, "aten::zeros_like", "zeros", {{"self", x}}));
  added(ops::aten(root, "aten::constant_pad_nd", "pad", {{"self", x}, {"pad", std::vector<int64_t>{1, 1}}}));
  added(ops::aten(root, "aten::arange", "range", {{"end", int64_t{10}}, {"dtype", kInt64}}));
  added(ops::reshape(root, x, {-1, 2}), ops::lt(root, a, b), ops::shape(root, x), ops::slice(root, x, 1, 0, 2));
  added(ops::split(root, x, {1, 3}, 1), ops::squeeze(root, ops::unsqueeze(root, x, 0), 0));
  added(ops::stack(root, {a, b}), ops::permute(root, x, {1, 0}), ops::transpose(root, x, 0, 1));
  added(ops::aten(root, "aten::repeat", "tiled", {{"self", x}, {"repeats", std::vector<int64_t>{2, 1}}}));
  added(ops::where(root, ops::gt(root, a, b), a, b), ops::aten(root, "aten::nonzero", "nonzero", {{"self", x}}));
  added.run(graph);
}

void layers() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Output x = ops::rand(root, {4, 4}), images = ops::rand(root, {2, 3, 8, 8});
  added(ops::batch_norm(root, images, ops::batch_norm_variables(root, 3), true));
  added(ops::conv2d_layer(root, images, 8, 3, {.padding = 1}, "conv", ops::LayerNames::kTfLayers));
  added(ops::relu(root, ops::dense(root, x, 8, "hidden")), ops::dropout(root, x, 0.5), ops::flatten(root, images));
  added(ops::max_pool2d(root, images, 2), ops::avg_pool2d(root, images, 2), ops::relu(root, x));
  {
    const Output filters = ops::rand(root, {8, 3, 3, 3}), bias = ops::rand(root, {8});
    added(ops::conv2d(root, images, filters, bias, {.stride = 2}));
  }
  {
    const Output filters = ops::rand(root, {3, 8, 2, 2});
    added(ops::aten(root, "aten::conv_transpose2d.input", "up", {{"input", images}, {"weight", filters}}));
  }
  {
    const Output signals = ops::rand(root, {2, 3, 8}), filters = ops::rand(root, {8, 3, 3});
    added(ops::aten(root, "aten::conv1d", "conv", {{"input", signals}, {"weight", filters}}));
  }
  const Output gamma = ops::ones(root, {4}), beta = ops::zeros(root, {4}), bias = ops::rand(root, {4});
  const Output mean = ops::mean(root, x, {0});
  added(ops::layer_norm(root, x, gamma, beta), ops::add(root, x, bias), ops::square(root, x - mean));
  added(ops::mul(root, x, ops::rsqrt(root, ops::sum(root, ops::square(root, x), {1}, true))));
  added(ops::leaky_relu(root, x, 0.2), ops::aten(root, "aten::softplus", "softplus", {{"self", x}}));
  added.run(graph);
}

void losses() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output x = ops::rand(root, {4, 4}), a = ops::rand(root, {4, 4}), b = ops::rand(root, {4, 4});
  const Output bias = ops::zeros(root, {3}), logits = ops::addmm(root, bias, x, w);
  const Output labels = ops::constant(root, Tensor::of<int64_t>({0, 1, 2, 0}));
  const Output loss = ops::cross_entropy_loss(root, logits, labels);
  added(ops::apply_regularization(root, ops::l2_regularizer(1e-4), {w}), ops::add_loss(loss));
  added(ops::get_total_loss(root), ops::get_regularization_loss(root), ops::mse_loss(root, a, b));
  added(ops::mean(root, ops::cast(root, ops::eq(root, ops::argmax(root, logits), labels), kFloat)));
  added(ops::embedding(root, w, labels, {.sparse_gradient = true}), ops::l2_loss(root, w));
  const Output probabilities = ops::softmax(root, logits);
  added(-ops::sum(root, ops::mul(root, probabilities, ops::log_softmax(root, logits)), {1}));
  added(ops::binary_cross_entropy_with_logits(root, a, b, ops::Reduction::kNone));
  added(ops::cross_entropy_loss(root, logits, labels, ops::Reduction::kNone));
  added(ops::aten(root, "aten::topk", "top", {{"self", logits}, {"k", int64_t{2}}}));
  added.run(graph);
}

void modules() {
  Graph graph;
  torch::nn::LSTM lstm(4, 3);
  torch::nn::CTCLoss ctc;
  const TorchTraining training = torch_training(Scope(graph), *lstm, {}, [&] {
    const torch::Tensor scores = std::get<0>(lstm->forward(torch::randn({6, 1, 4}))).log_softmax(2);
    return ctc->forward(scores, torch::ones({1, 2}, torch::kLong), torch::tensor({6}), torch::tensor({2}));
  });
  Added added;
  added(training.loss);
  added.run(graph);
}

void gradients_and_optimizers() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Variable step = ops::create_global_step(root);
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output x = ops::rand(root, {4, 4}), a = ops::rand(root, {4, 4}), b = ops::rand(root, {4, 4});
  const Output labels = ops::constant(root, Tensor::of<int64_t>({0, 1, 2, 0}));
  const Output loss = ops::cross_entropy_loss(root, ops::matmul(root, x, w), labels);
  added(ops::clip_by_norm(root, x, 5.0), ops::clip_by_value(root, x, -1, 1), ops::global_norm(root, {a, b}));
  added(ops::gradients(root, {loss}, {w}), ops::indexed_slices(root, x, labels, 10), ops::stop_gradient(root, x));
  added(ops::cosine_decay(root, 0.1, step, 10'000), ops::exponential_decay(root, 0.1, step, 1000, 0.96));
  added(ops::piecewise_constant(root, step, {1000, 2000}, {0.1, 0.01, 0.001}));
  added(ops::polynomial_decay(root, 0.1, step, 1000), ops::global_step(root));
  use(ops::get_global_step(graph), ExponentialMovingAverage(0.999, {.num_updates = step}));
  use(AdadeltaOptimizer(1.0), AdagradOptimizer(0.1), FtrlOptimizer(0.1), GradientDescentOptimizer(0.1));
  use(MomentumOptimizer(0.1, 0.9), RMSPropOptimizer(1e-3), AdamOptimizer(1e-3));
  GradientDescentOptimizer sgd(0.1);
  Optimizer& optimizer = sgd;
  added(optimizer.minimize(loss, step));
  auto gradients = optimizer.compute_gradients(root, loss);
  gradients = ops::clip_by_global_norm(root, gradients, 5.0).first;
  added(optimizer.apply_gradients(root, gradients, step));
  const SyncReplicasOptimizer replicas = SyncReplicasOptimizer(optimizer, 2);
  use(std::make_shared<SyncReplicasHook>(replicas, true));
  added.run(graph);
}

class CountingHook : public SessionRunHook {
 public:
  const SessionRunArgs* before_run(SessionRunContext&) override { return nullptr; }
  void after_run(SessionRunContext&, const SessionRunValues&) override { ++runs; }
  int runs = 0;
};

void train_in(const std::function<void(Graph& graph, const Output& loss, const Operation& train_op)>& train) {
  Graph graph;
  Scope root(graph);
  const Output x = ops::rand(root, {4, 4});
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output encoded = ops::dense(root.variable_scope("encoder"), ops::matmul(root, x, w), 2);
  const Output loss = ops::mean(root, ops::square(root, encoded));
  train(graph, loss, GradientDescentOptimizer(0.1).minimize(loss, ops::global_step(root)));
}

void supervise(Graph& graph, const Output& loss, const Operation& train_op) {
  const Output summaries = summary::scalar(Scope(graph), "loss", loss);
  const Variable step = ops::get_global_step(graph).value();
  use(SupervisorOptions{.is_chief = true}, record_option);
  record_option("batch_size", "64");
  Supervisor sv({.graph = &graph, .logdir = "runs/demo", .save_model_secs = Seconds{60}});
  const auto report = [] {};
  const auto train_loop = [&](Session& session) {
    sv.loop(Seconds{60}, report);
    for (int i = 0; i < 3 && !sv.should_stop(); ++i) session.run(train_op);
    sv.summary_computed(session, session.run(summaries));
    if (session.run(step).item<int64_t>() != 3) throw InternalError("wrong number of steps");
    use(sv.summary_writer());
    sv.request_stop();
  };
  sv.managed_session(train_loop);
  const auto train_step = [&](Session& session) {
    session.run(train_op);
    sv.request_stop();
  };
  basic_train_loop(sv, train_step);
  const std::shared_ptr<Session> session = sv.prepare_or_wait_for_session();
  sv.stop();
  session->close();
}

void use_hooks(Graph& graph, const Output& loss, const Operation& train_op) {
  const Output summaries = summary::scalar(Scope(graph), "loss", loss);
  const auto feed_fn = [] { return Feeds{}; };
  const auto init_fn = [](const Scaffold&, Session&) {};
  use(CheckpointSaverHook({.checkpoint_dir = "runs/hooks", .save_secs = Seconds{60}}), CheckpointSaverListener());
  use(FeedFnHook(feed_fn), FinalOpsHook({loss}), GlobalStepWaiterHook(100), NanTensorHook(loss));
  use(LoggingTensorHook({.tensors = {loss}, .every_n_iter = 100}), StopAtStepHook({.last_step = 1000}));
  use(ProfilerHook({.save_steps = 1000, .output_dir = "runs/traces"}), Scaffold({.init_fn = init_fn}));
  use(StepCounterHook({.every_n_steps = 100, .output_dir = "runs/hooks"}), SecondOrStepTimer({.every_steps = 100}));
  use(SummarySaverHook({.save_steps = 100, .output_dir = "runs/hooks", .summary_op = {summaries}}));
  use(MonitoredTrainingSessionOptions{});
  const auto hook = std::make_shared<CountingHook>();
  const auto train = [&](MonitoredSession& monitored) { monitored.run(train_op); };
  monitored_training_session({.graph = &graph, .checkpoint_dir = "runs/monitored"}, train);

  MonitoredSession monitored(
      {.session_creator = std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{.graph = &graph}),
       .hooks = {hook}});
  const auto body = [&] { monitored.run(train_op); };
  monitored.monitor(body);
  if (hook->runs != 1) throw InternalError("wrong number of calls of the hook");
  SingularMonitoredSession singular({.graph = &graph});
  use(WorkerSessionCreator({.graph = &graph}));
}

void use_coordinator(Graph& graph, const Output&, const Operation& train_op) {
  Coordinator coord;
  const auto read_all = [] {};
  const auto report = [] {};
  coord.start_thread("reader", read_all);
  LooperThread::loop(coord, Seconds{60}, report);
  coord.request_stop();
  coord.join();
  use(CancelledError(""), InvalidArgumentError(""), NotFoundError(""), OutOfRangeError(""));
  const OpList init_op = ops::global_variables_initializer(Scope(graph));
  SessionManager manager({.graph = &graph});
  manager.prepare_session({.init_op = init_op})->run(train_op);
}

void use_checkpoints(Graph& graph, const Output&, const Operation&) {
  init_from_checkpoint(graph, "runs/demo", {{"encoder/", "encoder/"}});
  CheckpointManager({.directory = "runs/managed", .max_to_keep = 3, .saver = {.graph = &graph}});
  Saver saver({.graph = &graph, .max_to_keep = 5});
  const Variable step = ops::get_global_step(graph).value();
  const auto owned = new_session("", graph);
  Session& session = *owned;
  session.run(ops::global_variables_initializer(Scope(graph)));
  const std::string prefix = saver.save(session, "runs/demo/model.ckpt", step);
  saver.restore(session, prefix);
  export_meta_graph(saver);
  Graph other;
  import_meta_graph(other, prefix + ".meta");
  latest_checkpoint(FileSystem::real(), "runs/demo").value();
  for (const NewCheckpoint& checkpoint : checkpoints_iterator("runs/demo", {.timeout = Seconds{600}})) use(checkpoint);
  use(get_checkpoint_state("runs/demo"), list_variables("runs/demo"), load_variable("runs/demo", "w"));
  use(load_checkpoint("runs/demo"), CheckpointReader("runs/demo"));
  const SafetensorsOptions options{.skip_unsupported = true};
  export_safetensors("runs/demo", "demo.safetensors", options);
  if (!checkpoint_exists(prefix)) throw InternalError(prefix + " does not exist");
  remove_checkpoint(prefix);
}

void summaries_and_logs() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Variable w = ops::variable(root, "w", ops::glorot_uniform(root, {4, 3}));
  const Output loss = ops::l2_loss(root, w), clips = ops::rand(root, {1, 100}), images = ops::rand(root, {1, 4, 4, 3});
  const Output texts = ops::constant(root, Tensor::of<std::string>({"a text"}));
  const Output summaries = summary::scalar(root, "loss", loss);
  added(summary::audio(root, "clip", clips, 8000), summary::histogram(root, "weights", w));
  added(summary::image(root, "images", images), summary::text(root, "note", texts));
  added(summary::merge(root, {summaries}), summary::merge_all(root).value());
  added.run(graph);

  const LogSink sink = [](LogLevel, const std::string&) {};
  const LogSink before = set_log_sink(sink);
  log_info("{} examples", 100);
  log_warning("no examples");
  set_log_sink(before);

  FileWriter writer("runs/events");
  writer.add_scalar("loss", 0.5f, 10);
  writer.add_summary(scalar_summary("loss", 0.5f), 10);
  writer.add_summary(proto::Summary(), 10);
  writer.close();
  EventReader reader(event_files("runs/events").front());
  reader.next().value();
  FileWriterCache::get("runs/events");
}

void datasets() {
  const Tensor features(kFloat, {10, 4}), targets(kInt64, {10});
  const auto make_example = [](int64_t i) { return Example{Tensor::scalar(i)}; };
  std::shared_ptr<const Dataset> dataset = make_dataset(1000, make_example);
  DataLoader loader(dataset, {.batch_size = 32, .seed = 7, .num_epochs = 10, .prefetch = 4});
  use(tensor_dataset({features, targets}), DataLoaderOptions{.num_threads = 2}, &Dataset::get, &Dataset::get_at);
  Graph graph;
  Scope root(graph);
  Added added;
  added(ops::load_batch(root, &loader).components);
  added.run(graph);
}

void decoders() {
  Graph graph;
  Scope root(graph);
  Added added;
  const Output x = ops::rand(root, {4, 4}), images = ops::rand(root, {2, 3, 8, 8});
  const Output lines = ops::constant(root, Tensor::of<std::string>({"1.5", "2.5"}));
  added(ops::index_table_from_file(root, "words.txt").size(root), ops::tables_initializer(root));
  added(ops::decode_csv(root, lines, {ops::required_column(kFloat)}), ops::decode_raw(root, lines, kUInt8));
  const Output pixels = ops::constant(root, Tensor(kUInt8, {2, 2, 3})), contents = ops::encode_png(root, pixels);
  added(ops::decode_jpeg(root, contents), ops::decode_png(root, contents, 3));
  added(ops::div(root, ops::cast(root, pixels, kFloat), 255), ops::slice(root, images, 2, 1, 5));
  added(ops::aten(root, "aten::upsample_bilinear2d", "larger",
                  {{"self", images}, {"output_size", std::vector<int64_t>{16, 16}}, {"align_corners", false}}));
  added(ops::aten(root, "aten::upsample_nearest2d", "near",
                  {{"self", images}, {"output_size", std::vector<int64_t>{16, 16}}}));
  const auto function = [](const std::vector<Tensor>& inputs) { return inputs; };
  const Output name = ops::constant(root, Tensor::scalar("words.txt"));
  added(ops::host_function(root, {x}, {kFloat}, function), ops::read_file(root, name));
  added.run(graph);
}

void write_records() {
  proto::Example example;
  for (int i = 0; i < 4; ++i)
    (*example.mutable_features()->mutable_feature())["x"].mutable_float_list()->add_value(1.0f);
  const auto file = FileSystem::real().create("a.tfrecord");
  RecordWriter records(*file);
  records.write(example.SerializeAsString());
  file->close();
}

void queues_and_readers() {
  write_records();
  Graph graph;
  Scope root(graph);
  FIFOQueue names = string_input_producer(root, {"a.tfrecord"});
  const Output reader = ops::tf_record_reader(root);
  const ops::KeyValue record = ops::read(root, reader, names);
  const Output records = ops::read_up_to(root, reader, names, 2).value;
  auto row = ops::parse_single_example(root, record.value, {{"x", FixedLenFeature{kFloat, {4}}}}).dense.at("x");
  auto rows = ops::parse_example(root, records, {{"x", FixedLenFeature{kFloat, {4}}}}).dense.at("x");
  use(VarLenFeature{kInt64}, FixedLenSequenceFeature{kFloat, {4}});
  FIFOQueue queue(root, 100, {kFloat}, {.shapes = {Shape{4}}});
  const Operation put = queue.enqueue(root, {row});
  const auto queue_taken = queue.dequeue_many(root, 32);
  add_queue_runner(graph, QueueRunner(root, queue, {put}));
  const auto next_element = [] { return std::optional(std::vector{Tensor::of<float>({1, 2, 3, 4})}); };
  enqueue_from(root, queue, next_element);
  PaddingFIFOQueue(root, 100, {kFloat}, {.shapes = {Shape{-1}}});
  RandomShuffleQueue(root, 100, 10, {kFloat});
  const Output x = ops::constant(root, Tensor(kFloat, {4, 4}));
  slice_input_producer(root, {x});
  range_input_producer(root, 100);
  string_input_producer(root, {"a.csv", "b.csv"}, {.num_epochs = 2});
  use(ops::whole_file_reader(root), ops::text_line_reader(root), ops::fixed_length_record_reader(root, 4));
  auto batches = batch(root, {row}, {.batch_size = 32});
  batch_join(root, {{row}, {row}}, {.batch_size = 32});
  shuffle_batch(root, {row}, {.batch_size = 32, .capacity = 1000, .min_after_dequeue = 300});
  shuffle_batch_join(root, {{row}, {row}}, {.batch_size = 32, .capacity = 1000, .min_after_dequeue = 300});

  const std::shared_ptr<Session> shared_session = new_session("", graph);
  shared_session->run({ops::global_variables_initializer(root), ops::local_variables_initializer(root)});
  Coordinator coord;
  start_queue_runners(shared_session, coord);
  shared_session->run({queue_taken[0], Output(batches[0]), rows});
  coord.request_stop();
  coord.join();
}

void files() {
  write_file_atomically(FileSystem::real(), "words.txt", "one\ntwo\n");
  write_file_atomically(FileSystem::real(), "old.txt", "");
  FileSystem::real().make_directories("runs/demo");
  if (!FileSystem::real().exists("runs")) throw InternalError("runs does not exist");
  use(FileSystem::real().list("runs"), read_file(FileSystem::real(), "words.txt"), testing::TemporaryDirectory());
  FileSystem::real().remove("old.txt");
}

}  // namespace

int main() {
  files();
  graphs_and_sessions();
  variables();
  mathematics();
  arrays();
  layers();
  losses();
  modules();
  gradients_and_optimizers();
  train_in(supervise);
  train_in(use_hooks);
  train_in(use_coordinator);
  train_in(use_checkpoints);
  summaries_and_logs();
  datasets();
  decoders();
  queues_and_readers();
}
