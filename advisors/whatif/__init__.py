"""The what-if model predicts what a change would do, by simulating the DataLoader with measured
times."""

from .predict import WhatIf
from .recorded import TooLittle
from .workload import Workload, workload_of

__all__ = ["TooLittle", "WhatIf", "Workload", "workload_of"]
