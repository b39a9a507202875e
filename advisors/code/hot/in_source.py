"""What the source of a data set proves to be slow inside fetching, where no stacks were recorded: and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ....profiler.inspect.inspection import Part
from ...case.case import Advice, Case, Outcome, Unmeasured
from ...case.code_text import identifier
from ...case.fetching import fetch_idle_share, fetch_share, file_suffix, held, names_used
from ...schema.figures import percent, us
from ..loader_code import dataset_class
from ..template import code_from
from .element_code import CAVEAT, elements_code, elements_of
from .element_reads import ElementReads
from .frame_rows import CAVEAT as ROWS_CAVEAT
from .frame_rows import rows_code

# Fetching that waits more than this is a matter of storage, not of a function.
MOST_IDLE = 0.5
# What one use of `.iloc` or `.loc` costs, at least and at most: pandas 3 builds a row's Series in 28 µs (columns of one
# type) to 67 µs (of three) on a 2.5 GHz Xeon, and what is done with it costs more (a part of it 120 µs, `drop` 480).
# docs/causes.md, "DataFrame rows", reports > 7 times.
ROW_US = (30.0, 600.0)
_ROWS = re.compile(r"\.i?loc\b")
# Of a sample that takes rows out of a DataFrame, what is left at best.
ROWS_LEFT = 0.05
# docs/causes.md, "Tensor elements one by one".
ELEMENTS = (0.05, 0.8)
ARRAY_ELEMENTS = (0.3, 0.95)
# Factors on fetch where the parser is all (plyfile 0.79 s, np.loadtxt 0.02 s), and where it is a part.
PLY = (0.03, 0.5)
TEXT = (0.05, 0.85)
ARCHIVE = (0.1, 0.85)
# What takes this long a sample is worth looking into, whatever it is.
UNKNOWN_FROM_US = 200.0

_TEXT_PARSERS = ("DictReader", "read_csv", "loadtxt", "genfromtxt", "json", "literal_eval")


def in_source(case: Case, sample_us: float) -> Iterator[Outcome]:
    """Without stacks: what the source proves to be slow, and no more."""
    idle = fetch_idle_share(case)
    names, suffix = names_used(case), file_suffix(case)
    evidence = {"fetch a sample": us(sample_us), "share of waiting": percent(fetch_share(case))}
    found = held(case, "dataframe")
    elements = elements_of(case)
    # What lies in memory is not waited for: time without computing is then time without a core.
    if found is not None and names & {"iloc", "loc"}:
        yield _rows(case, found[0], found[1].name, sample_us, evidence)
    elif elements is not None:
        yield _elements(case, *elements, evidence)
    elif idle is not None and idle > MOST_IDLE:
        return
    elif names & {"PlyData", "plyfile"}:
        yield _parser(case, "plyfile", PLY, evidence)
    elif suffix == ".npz" and "load" in names:
        yield _archive(case, evidence)
    elif parsers := [name for name in _TEXT_PARSERS if name in names]:
        yield _parser(case, parsers[0], TEXT, evidence)
    elif sample_us >= UNKNOWN_FROM_US:
        yield Unmeasured(_no_stacks(case, sample_us))


def _no_stacks(case: Case, sample_us: float) -> str:
    code = case.report.code
    seen = code.stages["fetch"].samples if code is not None and "fetch" in code.stages else 0
    if seen:
        samples = "samples of fetch are" if seen > 1 else "sample of fetch is"
        return (
            f"{seen} stack {samples} too few to tell what takes {us(sample_us)} a sample: record for longer, or run "
            "`loaderscope stacks` while it trains"
        )
    reason = f" ({code.reason})" if code is not None and code.reason else ""
    return (
        f"stacks were not recorded{reason}, so what takes the {us(sample_us)} a sample inside fetch is not known: run "
        "`loaderscope stacks` while it trains, or record a run of a few seconds with LOADERSCOPE_STACKS=eager"
    )


def _rows(case: Case, part: Part, attribute: str, sample_us: float, evidence: dict[str, str]) -> Advice:
    name = identifier(attribute, "frame")
    rows = max(1, sum(len(_ROWS.findall(line.partition("#")[0])) for line in part.getitem))
    least_us = min(rows * ROW_US[0], (1 - 3 * ROWS_LEFT) * sample_us)
    most_us = min(rows * ROW_US[1], (1 - ROWS_LEFT) * sample_us)
    return Advice(
        title="Keep the DataFrame's columns as arrays",
        why=(
            f"Each sample takes rows out of the DataFrame {name}, each of which makes a new Series: {us(least_us)} "
            f"to {us(most_us)} of the {us(sample_us)} a sample, with what is done with it. An array is "
            "read in less than a microsecond."
        ),
        evidence={**evidence, "rows are taken with": ".iloc or .loc, seen in the source"},
        predicted=case.predict(fetch=(1 - most_us / sample_us, 1 - least_us / sample_us)),
        code=rows_code(case),
        caveat=ROWS_CAVEAT,
    )


def _parser(case: Case, parser: str, factors: tuple[float, float], evidence: dict[str, str]) -> Advice:
    name = dataset_class(case)
    return Advice(
        title=f"Parse the files once, not at every access ({parser})",
        why=f"Each sample is parsed from text or by Python code ({parser}, seen in the source) at every access. "
        "Parsed once and stored as an array, it is only read.",
        evidence={**evidence, "parser": f"{parser}, seen in the source"},
        predicted=case.predict(fetch=factors),
        code=code_from(
            "once",
            "convert",
            then=f'# in __getitem__ of {name}, instead of parsing:\n#     values = np.load(f"{{path}}.npy")\n',
            BACKEND="text",
        ),
        caveat="The range is for a parser that takes most of fetch; how much it takes was not measured.",
    )


def _archive(case: Case, evidence: dict[str, str]) -> Advice:
    return Advice(
        title="Store the arrays uncompressed, and map them into memory",
        why="Each sample opens an .npz archive, which is read and decompressed as a whole, whatever is used of it.",
        evidence={**evidence, "files": ".npz, read with load"},
        predicted=case.predict(fetch=ARCHIVE),
        code=code_from(
            "once",
            "convert",
            then=f"# in __getitem__ of {dataset_class(case)}:\n"
            '#     values = np.load(f"{path}.{name}.npy", mmap_mode="r")[part_that_is_used]\n',
            BACKEND="npz",
        ),
        caveat="Uncompressed files are larger: on a slow disk, or beyond the page cache, reading them may cost more. "
        "Archives written by np.savez are not compressed; then only the opening is saved.",
    )


def _elements(case: Case, part: Part, reads: ElementReads, evidence: dict[str, str]) -> Advice:
    tensor = reads.attribute.kind == "tensor"
    name, what = identifier(reads.attribute.name, "values"), "tensor" if tensor else "array"
    return Advice(
        title=f"Do not read {'a tensor' if tensor else 'an array'} element by element",
        why=f"__getitem__ loops over elements of the {what} {name}: each read makes "
        f"{'a tensor' if tensor else 'a NumPy number'}, many times as slow as an element of a list.",
        evidence={**evidence, "loop over": f"elements of self.{name}, seen in the source"},
        predicted=case.predict(fetch=ELEMENTS if tensor else ARRAY_ELEMENTS),
        code=elements_code(case),
        caveat=CAVEAT,
    )
