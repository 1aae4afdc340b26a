"""The training of crossing_program.cc as a program of TensorFlow: its names, numbers, arguments and lines are the same.

    original.py supervisor|monitored OPTIMIZER LOGDIR LAST [EVERY]
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

ROWS, INPUTS, HIDDEN = 8, 4, 5

OPTIMIZERS = {
    "gradient_descent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": lambda: tf.train.AdamOptimizer(0.02),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-3),
    "centered_rmsprop": lambda: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=1e-3, centered=True),
    "adadelta": lambda: tf.train.AdadeltaOptimizer(1.0, epsilon=1e-4),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


def say(line):
    print(line, flush=True)


# Small fractions, which floats have exactly.
def pattern(shape, factor, offset, modulus, divisor):
    numbers = np.arange(np.prod(shape)) * factor + offset
    return ((numbers % modulus - modulus // 2) / float(divisor)).astype(np.float32).reshape(shape)


def variable(name, shape, factor):
    return tf.get_variable(name, initializer=pattern(shape, factor, 0, 13, 16), use_resource=False)


class Training:
    def __init__(self, optimizer):
        self.x = tf.placeholder(tf.float32, [ROWS, INPUTS], "x")
        self.y = tf.placeholder(tf.float32, [ROWS, 1], "y")
        w1, b1 = variable("w1", [INPUTS, HIDDEN], 5), variable("b1", [HIDDEN], 4)
        w2, b2 = variable("w2", [HIDDEN, 1], 3), variable("b2", [1], 7)
        hidden = tf.tanh(tf.matmul(self.x, w1) + b1)
        self.loss = tf.reduce_mean(tf.square(tf.matmul(hidden, w2) + b2 - self.y))
        self.step = tf.train.create_global_step()
        self.train = OPTIMIZERS[optimizer]().minimize(self.loss, self.step)

    def begin(self, step):
        self.begins = self.at = int(step)
        say("begins at step %d" % self.at)

    def make_step(self, session):
        feeds = {self.x: pattern([ROWS, INPUTS], 7, 3 * self.at, 11, 8), self.y: pattern([ROWS, 1], 5, self.at, 7, 4)}
        loss, _ = session.run([self.loss, self.train], feeds)
        self.at += 1
        say("step %d loss %.9g" % (self.at, loss))


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


def main(manager, optimizer, logdir, last, every="0"):
    run = {"supervisor": run_supervised, "monitored": run_monitored}[manager]
    run(Training(optimizer), logdir, int(last), int(every))


main(*sys.argv[1:])
