"""The training of crossing_program.cc as a program of TensorFlow: its names, numbers, arguments and lines are the same.

    original.py supervisor|monitored MODEL OPTIMIZER LOGDIR LAST [EVERY]
    original.py import FILE.meta
"""

import os
import signal
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

ROWS, INPUTS, HIDDEN, WORDS = 8, 4, 5, 6

OPTIMIZERS = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "named_momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9, name="Speed"),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.02),
    "named_adam": lambda: tf.train.AdamOptimizer(0.02, name="AdamG"),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-3),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-3, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-4),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


def say(line):
    print(line, flush=True)


# Small fractions, which floats have exactly.
def pattern(shape, factor, offset, modulus, divisor, dtype=np.float32):
    numbers = np.arange(np.prod(shape, dtype=int)) * factor + offset
    return ((numbers % modulus - modulus // 2) / float(divisor)).astype(dtype).reshape(shape)


def variable(name, shape, factor, dtype=np.float32):
    return tf.get_variable(name, initializer=pattern(shape, factor, 0, 13, 16, dtype), use_resource=False)


def two_layers(x, dtype=np.float32):
    w1, b1 = variable("w1", [INPUTS, HIDDEN], 5, dtype), variable("b1", [HIDDEN], 4, dtype)
    w2, b2 = variable("w2", [HIDDEN, 1], 3, dtype), variable("b2", [1], 7, dtype)
    return tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) + b2


# tf.layers.dense, which is not there beside Keras 3; the names that it gives are.
def dense(name, x, units, factor):
    def start(shape, dtype=None, partition_info=None):
        return pattern([int(size) for size in shape], factor, 0, 13, 16)

    if tf.__version__ < "2":
        return tf.layers.dense(x, units, kernel_initializer=start)
    with tf.variable_scope(name):
        kernel = variable("kernel", [int(x.shape[1]), units], factor)
        return tf.matmul(x, kernel) + tf.get_variable("bias", initializer=np.zeros(units, np.float32))


class Perceptron:
    dtype = np.float32

    def __init__(self, optimizer):
        self.y = tf.placeholder(self.dtype, [ROWS, 1], "y")
        self.add_loss()
        self.step = self.add_step()
        self.train = self.add_training(OPTIMIZERS[optimizer]())

    def add_loss(self):
        self.x = tf.placeholder(self.dtype, [ROWS, INPUTS], "x")
        self.loss = tf.reduce_mean(tf.square(self.result(self.x) - self.y))

    def result(self, x):
        return two_layers(x, self.dtype)

    def add_step(self):
        return tf.train.create_global_step()

    def add_training(self, optimizer):
        return optimizer.minimize(self.loss, self.step)

    def batch(self, at):
        return {self.x: pattern([ROWS, INPUTS], 7, 3 * at, 11, 8, self.dtype), self.y: self.labels(at)}

    def labels(self, at):
        return pattern([ROWS, 1], 5, at, 7, 4, self.dtype)


class Doubles(Perceptron):
    dtype = np.float64


class Scopes(Perceptron):
    def result(self, x):
        with tf.variable_scope("net"):
            self.step = tf.train.create_global_step()
            return two_layers(x)

    def add_step(self):
        return self.step

    def add_training(self, optimizer):
        with tf.variable_scope("train"):
            return optimizer.minimize(self.loss, self.step)


class Layers(Perceptron):
    def result(self, x):
        return dense("dense_1", tf.tanh(dense("dense", x, HIDDEN, 5)), 1, 3)


class Embedding(Perceptron):
    def add_loss(self):
        self.words = tf.placeholder(tf.int64, [ROWS], "words")
        table = variable("table", [WORDS, INPUTS], 6)
        self.loss = tf.reduce_mean(tf.square(two_layers(tf.nn.embedding_lookup(table, self.words)) - self.y))

    def batch(self, at):
        return {self.words: (np.arange(ROWS) * 5 + at) % WORDS, self.y: self.labels(at)}


# Without layers. Its graph is that of the newest checkpoint's .meta file where there is one.
class State:
    def __init__(self, logdir):
        self.checkpoint = tf.train.latest_checkpoint(logdir)
        if self.checkpoint:
            self.saver = tf.train.import_meta_graph(self.checkpoint + ".meta")
        else:
            self.build()
            self.init = tf.global_variables_initializer()
            self.saver = tf.train.Saver()
        graph = tf.get_default_graph()
        self.step, self.loss = graph.get_tensor_by_name("global_step:0"), graph.get_tensor_by_name("loss:0")
        self.train = graph.get_operation_by_name("train")

    def build(self):
        total, table, step = variable("sum", [], 1), variable("table", [2, 3], 5), tf.train.create_global_step()
        loss = tf.assign_add(total, 0.25, name="loss")
        others = [tf.assign_sub(table, pattern([2, 3], 1, 0, 6, 4)), tf.assign_add(step, 1)]
        tf.group(loss, *others, name="train")

    def batch(self, at):
        return {}

    def begin(self, session):
        if self.checkpoint:
            self.saver.restore(session, self.checkpoint)
        else:
            session.run(self.init)


MODELS = {"perceptron": Perceptron, "doubles": Doubles, "scopes": Scopes, "layers": Layers, "embedding": Embedding}


class Training:
    def __init__(self, model):
        self.model, self.step = model, model.step

    def begin(self, step):
        self.begins = self.at = int(step)
        say("begins at step %d" % self.at)

    def make_step(self, session):
        loss, _ = session.run([self.model.loss, self.model.train], self.model.batch(self.at))
        self.at += 1
        say("step %d loss %.17g" % (self.at, loss))


def hold():
    say("holds")
    signal.pause()


def run_supervised(training, logdir, last, every):
    sv = tf.train.Supervisor(logdir=logdir, save_model_secs=0, save_summaries_secs=0)
    with sv.managed_session() as session:
        training.begin(session.run(training.step))
        while training.at < last:
            training.make_step(session)
            if every and (training.at - training.begins) % every == 0:
                sv.saver.save(session, sv.save_path, global_step=sv.global_step)
        if every:
            hold()
        sv.saver.save(session, sv.save_path, global_step=sv.global_step)


def run_monitored(training, logdir, last, every):
    with tf.train.MonitoredTrainingSession(
            checkpoint_dir=logdir, save_checkpoint_steps=every or 1000000, save_summaries_steps=None,
            save_summaries_secs=None, log_step_count_steps=0) as session:
        training.begin(session.run_step_fn(lambda step_context: step_context.session.run(training.step)))
        while training.at < last:
            training.make_step(session)
        if every:
            hold()


# By hand: the ready ops that a manager would add to the graph are of operations that Longhaul does not import.
def run_state(training, logdir, last, every):
    with tf.Session() as session:
        training.model.begin(session)
        training.begin(session.run(training.step))
        while training.at < last:
            training.make_step(session)
            if every and (training.at - training.begins) % every == 0:
                save_state(training, session, logdir)
        if every:
            hold()
        save_state(training, session, logdir)


def save_state(training, session, logdir):
    training.model.saver.save(session, os.path.join(logdir, "model.ckpt"), global_step=training.step)


def main(manager, model, optimizer, logdir, last, every="0"):
    run = {"supervisor": run_supervised, "monitored": run_monitored}[manager]
    if model == "state":
        os.makedirs(logdir, exist_ok=True)
        run_state(Training(State(logdir)), logdir, int(last), int(every))
    else:
        run(Training(MODELS[model](optimizer)), logdir, int(last), int(every))


if sys.argv[1] == "import":
    tf.train.import_meta_graph(sys.argv[2])
else:
    main(*sys.argv[1:])
