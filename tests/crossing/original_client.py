"""A client of a server, as a program of TensorFlow 1.15 or 2: it lists devices, makes, assigns, reads
and extends, sees what a second session sees, resets and closes. It prints a line for each, and ends with 0 if all is as
with a server of TensorFlow.

    "$LONGHAUL_TENSORFLOW" tests/crossing/original_client.py grpc://localhost:2222
"""

import contextlib
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np  # noqa: E402
import tensorflow.compat.v1 as tf  # noqa: E402

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

CONFIG = tf.ConfigProto(operation_timeout_in_ms=30000)


def hold(name, condition):
    print("%s: %s" % (name, "ok" if condition else "FAILED"), flush=True)
    if not condition:
        sys.exit(1)


# The server forgets a session when it is reset, and says so when it is closed.
@contextlib.contextmanager
def closing(session):
    yield session
    raises(tf.errors.AbortedError, session.close)


def raises(error, call):
    try:
        call()
    except error:
        return True
    return False


# Assign, read and an identity are all that a server needs to know of a model; the graph grows between two runs.
def model():
    graph = tf.Graph()
    with graph.as_default():
        v = tf.Variable([1.5, 2.5], name="v", dtype=tf.float32, use_resource=False)
        n = tf.Variable(np.int64(7), name="n", dtype=tf.int64, use_resource=False)
        x = tf.placeholder(tf.float32, [2], name="x")
        text = tf.placeholder(tf.string, [2], name="text")
        return graph, v, n, x, tf.assign(v, x), tf.identity(text), tf.global_variables_initializer()


def use(target):
    graph, v, n, x, assign, text, init = model()
    with closing(tf.Session(target, graph=graph, config=CONFIG)) as session:
        devices = session.list_devices()
        hold("devices", len(devices) >= 1 and all(d.name.startswith("/job:") and d.incarnation for d in devices))
        hold("uninitialised", raises(tf.errors.FailedPreconditionError, lambda: session.run(v)))
        session.run(init)
        hold("read", session.run([v, n])[0].tolist() == [1.5, 2.5] and session.run(n) == 7)
        hold("assign", session.run(assign, {x: [3, 4]}).tolist() == [3, 4])
        hold("strings", session.run(text, {"text:0": [b"a", b""]}).tolist() == [b"a", b""])
        with graph.as_default():
            later = tf.identity(v, name="later")
        hold("extend", session.run(later).tolist() == [3, 4])
        run = session.make_callable(assign, [x])
        hold("callable", all(run(np.array([i, -i], np.float32)).tolist() == [i, -i] for i in range(25)))
        wide = np.arange(3000000, dtype=np.float32).reshape(1000, 3000)
        with graph.as_default():
            big = tf.identity(tf.placeholder(tf.float32, name="big"), name="big_again")
        hold("12 MB", np.array_equal(session.run(big, {"big:0": wide}), wide))
        with tf.Session(target, graph=graph, config=CONFIG) as other:
            hold("shared", other.run(v).tolist() == [24, -24])
        tf.Session.reset(target)
        hold("reset", raises(tf.errors.AbortedError, lambda: session.run(v)))
    with tf.Session(target, graph=graph, config=CONFIG) as session:
        hold("empty", raises(tf.errors.FailedPreconditionError, lambda: session.run(v)))
    print("closed: ok", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    use(sys.argv[1])
