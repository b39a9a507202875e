"""The types of arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]  # numbers of rows
Mask = npt.NDArray[np.bool_]
