"""One library thread a worker: the environment is set before what reads it is imported."""

import os
import sys

for name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
):
    os.environ.setdefault(
        name, "1"
    )  # before numpy and others are imported: at the top of the script

import torch
from torch.utils.data import DataLoader

from .placeholders import LOADER, OWN_INIT

try:
    from threadpoolctl import (
        threadpool_limits,
    )  # pip install threadpoolctl: for libraries that are loaded already
except ImportError:
    threadpool_limits = None


def one_thread(worker_id):
    OWN_INIT(worker_id)  # yours, as before
    torch.set_num_threads(1)
    if threadpool_limits is not None:
        threadpool_limits(1)
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(0)


LOADER
