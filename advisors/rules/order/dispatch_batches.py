"""Rank 0 makes the batches of all ranks: Accelerate's dispatcher.

What it looks for
    A loader in several ranks whose batches Accelerate's DataLoaderDispatcher takes in rank 0,
    joins, and broadcasts, each rank keeping its part: known by its loop being on the stack as the
    loader's iteration begins.

Why it matters
    For each step rank 0 makes as many batches as there are ranks, by itself or with its own workers
    alone, while the other ranks' CPUs have nothing to do. The more ranks, the longer each step
    waits. Every batch goes to every rank whole, too.

What to change
    DataLoaderConfiguration(dispatch_batches=False): each rank then makes its own batches.
    Accelerate chooses the dispatcher by itself for iterable data sets; of those, each rank must be
    able to read its own part of the stream.

When not to
    Where the stream cannot be shared out, where only rank 0 can reach the data, or where ranks must
    not see different numbers of batches. Without the dispatcher, Accelerate lets each rank read a
    whole iterable data set and keep its part, which gains nothing where reading is what takes long;
    Hugging Face's own IterableDataset it shards by files.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...case.advice import Outcome
from ...case.case import Case
from ...code.loader_form import framework_of
from ...schema.figures import us

NAME = "dispatch-batches"
KIND = "speed"
EFFORT = "one argument"

# Cores a rank below which ranks that all make batches would take them from each other.
LEAST_CPUS = 1.0

_ACCELERATE = """\
from accelerate import Accelerator, DataLoaderConfiguration

# beside the arguments you give it today
accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=False))
"""
_TRAINER = """\
from transformers import TrainingArguments

# beside the arguments you give it today
args = TrainingArguments(accelerator_config={"dispatch_batches": False})
"""
_STREAM = """
# By hand: let each rank read its own part of the stream.
# - Hugging Face datasets: split by files, which Accelerate does where there are at least as many
#   as ranks; dataset.n_shards says how many there are.
# - A stream of your own: give it its part, for example
#       dataset.files = dataset.files[accelerator.process_index :: accelerator.num_processes]
#   and do not hand this loader to accelerator.prepare(), which would share it out once more.
"""


def examine(case: Case) -> Iterator[Outcome]:
    ranks = case.process.world_size or 1
    if not case.config.get("dispatched") or ranks < 2 or case.whatif is None:
        return
    stream = case.config.get("dataset_kind") == "iterable"
    # At best each rank makes one batch a step where rank 0 made one for each; ranks of a host share
    # its CPUs and disks.
    best = 1 / ranks
    short = case.cpus is not None and case.cpus < LEAST_CPUS
    worst = 1.0 if short else (1 + best) / 2
    evidence = {"ranks": str(ranks)}
    for stage, words in (
        ("fetch", "fetching a batch"),
        ("collate", "collating it"),
        ("wait", "waiting for it"),
    ):
        if (mean := case.mean_us(stage)) is not None:
            evidence[words] = us(mean)
    code = (_TRAINER if framework_of(case) == "transformers" else _ACCELERATE) + (
        _STREAM if stream else ""
    )
    yield case.change(
        code=code, dispatch_batches=False, fetch=(best, worst), collate=(best, worst)
    ).advise(
        title="Let each rank make its own batches, without Accelerate's dispatcher",
        why=(
            f"Rank 0 makes the batches of all {ranks} ranks, {ranks} for each step, and broadcasts "
            "them: the other ranks only wait for it."
            + (" Accelerate chooses that by itself for an iterable data set." if stream else "")
        ),
        evidence=evidence,
        caveat=(
            "The range holds for a stream of which each rank reads only its part, all parts "
            "equally long: ranks that run out early leave the others waiting. With "
            "dispatch_batches=False alone, each rank reads the whole stream and keeps its part."
            if stream
            else "Each rank then reads the data set itself: its host must reach the data. With "
            "split_batches=True, batch_size stays that of all ranks together."
        ),
    )
