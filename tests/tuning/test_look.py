"""What is predicted beside the loop, in a thread of the training process."""

from __future__ import annotations

import textwrap

from started import python

PREDICTS = """
    import sys, threading
    import numpy
    from loaderscope.tuning.look import Look

    begun = threading.Event()

    def unending():
        numbers = numpy.random.default_rng(1).integers(0, 1000, 20_000)
        while True:
            numpy.unique(numbers)  # in C++, where the interpreter's end would end the process by SIGABRT
            begun.set()

    look = Look()
    look.predict(unending)
    begun.wait()
    print("trained", flush=True)
    sys.exit(3)
"""


def test_a_training_ends_as_it_would_while_something_is_predicted() -> None:
    done = python("-c", textwrap.dedent(PREDICTS))
    assert (done.returncode, done.stdout, done.stderr) == (3, "trained\n", "")
