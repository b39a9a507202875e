"""Rank 0 makes the batches of all ranks: Accelerate's dispatcher.

What it looks for
    A loader in several ranks whose batches Accelerate's DataLoaderDispatcher takes in rank 0,
    joins, and broadcasts, each rank keeping its part: known by its loop being on the stack as the
    loader's iteration begins.

Why it matters
    For each step rank 0 makes as many batches as there are ranks, with its own workers alone, while
    the other ranks' CPUs are idle. The more ranks, the longer each step waits. Also, every batch
    goes to every rank whole.

What to change
    DataLoaderConfiguration(dispatch_batches=False): each rank then makes its own batches.
    Accelerate chooses the dispatcher by itself for iterable data sets; of those, each rank must be
    able to read its own part of the stream.

When not to
    If the stream cannot be divided, if only rank 0 can reach the data, or if ranks must not see
    different numbers of batches. Without the dispatcher, Accelerate lets each rank read a whole
    iterable data set and keep its part, which gains nothing if reading is the slow part. It shards
    Hugging Face's own IterableDataset by files.
"""

from ...case.advice import Outcomes
from ...case.case import Case
from ...code.loader_form import framework_of
from ...schema.evidence import count, us

EFFORT = "one argument"
NEEDS = "prediction"

# With fewer cores per rank, ranks that all make batches take them from each other.
LEAST_CPUS = 1.0

_ACCELERATE = """\
from accelerate import Accelerator, DataLoaderConfiguration

# together with the arguments you give it today
accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=False))
"""
_TRAINER = """\
from transformers import TrainingArguments

# together with the arguments you give it today
args = TrainingArguments(accelerator_config={"dispatch_batches": False})
"""
_STREAM = """
# By hand: let each rank read its own part of the stream.
# - Hugging Face datasets: split by files, which Accelerate does if there are at least as many as
#   ranks; dataset.n_shards says how many there are.
# - A stream of your own: give it its part, for example
#       dataset.files = dataset.files[accelerator.process_index :: accelerator.num_processes]
#   and do not hand this loader to accelerator.prepare(), which would divide it once more.
"""


def examine(case: Case) -> Outcomes:
    ranks = case.process.world_size or 1
    if not case.config.get("dispatched") or ranks < 2:
        return
    stream = case.meets("stream")
    # At best each rank makes one batch per step, where rank 0 made one for each; ranks of a host
    # share its CPUs and disks.
    best = 1 / ranks
    short = case.cpus is not None and case.cpus < LEAST_CPUS
    left = (best, 1.0 if short else (1 + best) / 2)
    why = (
        f"Rank 0 makes the batches of all {ranks} ranks, {ranks} for each step, and broadcasts "
        "them: the other ranks only wait for it."
    )
    caveat = (
        "Each rank then reads the data set itself: its host must reach the data. With "
        "split_batches=True, batch_size stays that of all ranks together."
    )
    code = _TRAINER if framework_of(case) == "transformers" else _ACCELERATE
    if stream:
        why += " Accelerate chooses that by itself for an iterable data set."
        code += _STREAM
        caveat = (
            "The range holds for a stream of which each rank reads only its part, all parts "
            "equally long: ranks that run out early leave the others waiting. With "
            "dispatch_batches=False alone, each rank reads the whole stream and keeps its part."
        )
    yield case.change(code=code, dispatch_batches=False, fetch=left, collate=left).advise(
        "Let each rank make its own batches, without Accelerate's dispatcher",
        why,
        {
            "ranks": count(ranks),
            "fetching a batch": us(case.mean_us("fetch")),
            "collating it": us(case.mean_us("collate")),
            "waiting for it": us(case.mean_us("wait")),
        },
        caveat=caveat,
    )
