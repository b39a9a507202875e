"""The what-if model: a simulation of the DataLoader, fed with measured times, that predicts what a
change would do."""

from .predict import WhatIf
from .recorded import TooLittle
from .workload import Workload, workload_of

__all__ = ["TooLittle", "WhatIf", "Workload", "workload_of"]
