"""collate: a slow collate function, and what its source says."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from loaderscope.advisors.case.advice import Advice
from loaderscope.advisors.case.case import Case
from loaderscope.profiler.base.host import host_name
from loaderscope.profiler.record.inspect.inspect_samples import inspect_samples
from loaderscope.profiler.store.sampled_fetches import SampledFetches
from rule_cases import advice, arguments, asked, case_of, outcomes, unmeasured, workers_config
from rule_rows import main_loop, worker_loop
from stack_cases import seen
from storage_cases import looked, pasted

NAME = "collate"


def join(*body: str) -> list[str]:
    return ["def join(samples):", *(f"    {line}" for line in body)]


FROM_LIST = join("xs = [x for x, _ in samples]", "return torch.tensor(xs)")
LOOPS = ("for i, s in enumerate(samples):", "    for j, v in enumerate(s):")
LOOP = join("out = torch.zeros(8, 9)", *LOOPS, "        out[i, j] = v", "return out")
PADS = join("return pad_sequence(samples, batch_first=True)")
PLAIN = join("return torch.stack(samples)")
TOKENS = join("return pad_sequence([torch.tensor(t) for t in samples])")

PADDED = {"path": "", "kind": "tensor", "dtype": "torch.float32", "nbytes": 1000}
PADDED |= {"padding_share": 0.5}


def slow_case(path, source, leaves=(), workers=0, collate_ms=8.0) -> Case:
    if workers:
        rows = worker_loop(100, wait_ms=9.0, compute_ms=1.0, fetch_ms=4.0, collate_ms=collate_ms)
    else:
        rows = main_loop(100, fetch=4.0, collate=collate_ms)
    collate = {"type": "train.join", "name": "join", "call": source}
    facts: Any = {"config": {**workers_config(workers), "collate_fn": "train.join"}}
    facts["inspection"] = {"collate": collate, "leaves": list(leaves)}
    return case_of(path, rows, **facts)


def test_loops_over_values_are_found_where_they_take_the_time(tmp_path: Path) -> None:
    made = slow_case(tmp_path, LOOP)
    stack = ("join /home/u/train.py:5", 90)
    found = advice(NAME, seen(made, stack, text="out[i, j] = v", stage="collate"))
    assert found.title.startswith("Do this for all values at once, not one by one")
    assert found.code.startswith("# By hand")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "source", [LOOP, join("return torch.tensor([s.tolist() for s in samples])")]
)
def test_loops_and_lists_are_found_in_the_source_without_stacks(tmp_path, source, workers) -> None:
    found = advice(NAME, slow_case(tmp_path, source, workers=workers))
    assert "loops" in found.title and found.code.startswith("# By hand")


@pytest.mark.parametrize(
    ("source", "leaves", "samples"),
    [
        (PADS, [{**PADDED, "padding_share": 0.1}], None),
        (TOKENS, (), [[1, 2], [3]]),  # padded lists of tokens are not stacked
        ([], (), None),
        (PLAIN, (), None),
    ],
)
def test_no_guess_without_a_cause(tmp_path, source, leaves, samples):
    case = slow_case(tmp_path, source, leaves)
    assert unmeasured(NAME, case if samples is None else described(case, samples))


ARRAY = np.ones(3, np.float32)


def described(case: Case, samples: Any) -> Case:
    """The case of a loader whose samples were described as it was recorded."""
    return looked(case, SampledFetches(fields=inspect_samples(samples)))


def test_the_buckets_cover_every_sample_once(tmp_path: Path) -> None:
    worker = advice(NAME, slow_case(tmp_path / "worker", PADS, [PADDED], workers=2))
    found = advice(NAME, slow_case(tmp_path, PADS, [PADDED]))
    assert found.title == worker.title == "Batch samples of similar length together"
    assert "not run" in (found.recommendation(NAME, "speed").caveat or "")
    code = found.code
    call = arguments(code)
    assert call["batch_sampler"] == "LengthBuckets(lengths, RandomSampler(dataset), batch_size=4)"
    assert not {"batch_size", "shuffle"} & set(call)
    data = [(torch.zeros(n % 17 + 1), 0) for n in range(103)]
    loader = pasted(code, data, join=lambda samples: [len(x) for x, _ in samples])
    lengths = [length for batch in loader for length in batch]
    assert sorted(lengths) == sorted(len(x) for x, _ in data)
    assert len([*loader]) == len(loader) == 26


def test_silent_where_collating_is_little_or_torchs_own(tmp_path: Path) -> None:
    torchs = case_of(tmp_path / "a", main_loop(100, fetch=4.0, collate=8.0))
    little = slow_case(tmp_path / "b", FROM_LIST, collate_ms=0.5)
    assert outcomes(NAME, torchs) == outcomes(NAME, little) == []


def test_stacks_name_what_the_source_does_not_tell(tmp_path: Path) -> None:
    contract = "join /home/u/train.py:8 > contract site/opt_einsum/x.py:3"
    stacks = (contract, 80), ("join /home/u/train.py:9", 20)
    found = advice(NAME, seen(slow_case(tmp_path, PLAIN), *stacks, stage="collate"))
    assert found.by_hand and found.title == "Make this cheaper, or avoid it: join"
    assert "`join` (train.py:8) takes 80 % of collate, in opt_einsum contract." in found.why
    few = seen(slow_case(tmp_path / "few", PLAIN), ("join /home/u/train.py:8", 4), stage="collate")
    assert "profile it alone" in unmeasured(NAME, few)


def test_functions_that_are_known_in_fetching_are_known_in_it(tmp_path: Path) -> None:
    stack = "join /home/u/train.py:8 > resample site/librosa/core/audio.py:3", 90
    found = advice(NAME, seen(slow_case(tmp_path, PLAIN), stack, stage="collate"))
    assert found.title.startswith("Resample and filter") and "100 % of collate" in found.why


def test_arrays_are_to_be_stacked(tmp_path: Path) -> None:
    line = "return torch.tensor([x[0] for x in samples])"
    case = slow_case(tmp_path, join(line))
    found = advice(NAME, seen(case, ("join /home/u/train.py:3", 90), stage="collate", text=line))
    assert "Hand arrays to torch" in found.title and "np.stack" in found.code
    assert found.why.startswith(f"`{line}`")
    assert asked(case) == [{"collate": (pytest.approx(0.03), pytest.approx(0.23, abs=0.01))}]


@pytest.mark.parametrize(("over", "once"), [("samples", True), ("samples[0].keys()", False)])
def test_what_is_done_for_each_field_is_not_done_for_each_sample(tmp_path, over, once) -> None:
    lines = f"made = [prepared(each) for each in {over}]", "return torch.stack(made)"
    stacks = ("join /home/u/train.py:3", 90)
    found = advice(
        NAME, seen(slow_case(tmp_path, join(*lines)), stacks, stage="collate", text=lines[0])
    )
    assert found.title.startswith("Do this once for each sample") is once


def test_a_function_below_it_makes_a_tensor_of_arrays(tmp_path: Path) -> None:
    file, line = tmp_path / "train.py", "return torch.tensor(parts)"
    source = ["def made(parts):", f"    {line}", "", "", *join("return made([s for s in samples])")]
    file.write_text("\n".join(source))
    case = slow_case(tmp_path / "run", source[4:])
    here = replace(case.process, host=host_name(), unix_ns=time.time_ns() + 10**9)
    stack = f"join {file}:6 > made {file}:2", 90
    arrays = described(replace(case, process=here), [ARRAY, ARRAY])
    found = advice(NAME, seen(arrays, stack, text=line, stage="collate"))
    assert "Hand arrays" in found.title and found.code.startswith("# By hand (train.py:2): keep")


FILLED = join("ids = []", "for x in samples: ids.append(pad(x))", "return torch.tensor(ids)")
LOOPED = join("xs = []", "for v in samples:", "    xs.append(v + 1)", "return torch.stack(xs)")


@pytest.mark.parametrize(
    ("source", "text", "title"),
    [
        (FILLED, "return torch.tensor(ids)", "Hand arrays to torch, not lists"),
        (FILLED, "ids.append(pad(x))", "Make this cheaper"),  # what stands in the loop is it
        (LOOPED, "xs.append(v + 1)", "Do this for all values at once"),
        (LOOPED, "return torch.stack(xs)", None),
    ],
)
def test_a_loop_is_the_cause_where_it_takes_the_time(tmp_path, source, text, title):
    line = next(n for n, each in enumerate(source) if text in each)
    stack = (f"join /home/u/train.py:{line}", 90)
    made = seen(slow_case(tmp_path, source), stack, text=text, stage="collate")
    assert unmeasured(NAME, made) if title is None else advice(NAME, made).title.startswith(title)


def test_hostile_names_stay_out_of_the_code(tmp_path: Path) -> None:
    evil = "__import__('os').system('x')"
    leaf = {"path": "['a'); import os #']", "kind": "tensor", "dtype": evil}
    leaf |= {"padding_share": 0.5}
    told = {"collate": {"type": evil, "name": evil, "call": PADS}, "leaves": [leaf]}
    config = dict.fromkeys(("collate_fn", "dataset", "sampler"), evil)
    rows = main_loop(100, fetch=4.0, collate=8.0)
    case = case_of(tmp_path, rows, config=config, inspection=told)
    assert "import os" not in advice(NAME, case).code


def by_default(made: Case) -> Case:
    config = {**made.config, "collate_fn": "torch.utils.data._utils.collate.default_collate"}
    return replace(made, loader=replace(made.loader, config=config))


def advised_on(made: Case) -> list[Advice]:
    return [each for each in outcomes(NAME, made) if isinstance(each, Advice)]


@pytest.mark.parametrize(("count", "advised"), [(768, True), (4, False)])
def test_lists_of_numbers_by_default_collate(tmp_path: Path, count: int, advised: bool) -> None:
    size = slow_case(tmp_path, PLAIN).batch_size
    numbers = [{"path": f"[0][{n}]", "kind": "tensor", "shape": [size]} for n in range(count)]
    # As many as are described.
    made = by_default(slow_case(tmp_path / "other", PLAIN, leaves=numbers[:128]))
    found = advised_on(made)
    titles = ["Return tensors from the data set"] if advised else []
    assert [each.title.partition(",")[0] for each in found] == titles
    assert all("128 or more of them in batch[0]" in each.why for each in found)


@pytest.mark.parametrize("count", [8, 40])
def test_lists_of_numbers_that_a_function_of_ones_own_hands_on(tmp_path: Path, count: int) -> None:
    source = join("batch = default_collate(samples)", "return batch")
    made = described(slow_case(tmp_path, source), [[0.5] * count] * 4)
    stacks = ("join patches.py:41 > collate site/torch/utils/data/_utils/collate.py:9", 100)
    found = advice(NAME, seen(made, stacks, stage="collate", text=source[1].strip()))
    assert found.title.startswith("Return tensors from the data set") == (count > 16)


@pytest.mark.parametrize(
    ("nbytes", "bytes_hold_it", "advised"),
    [(40_000_000, None, True), (40_000_000, True, False), (400_000, None, False)],
)
def test_batches_that_take_long_to_copy(tmp_path, nbytes, bytes_hold_it, advised):
    """Of pictures that bytes would hold another rule says more."""
    large = {"path": "[0]", "kind": "tensor", "dtype": "float32", "shape": [4, 2500, 1000]}
    leaves = [{**large, "nbytes": nbytes, "whole_255ths": bytes_hold_it}]
    own, line = slow_case(tmp_path, PLAIN, leaves=leaves), "return torch.stack(samples)"
    own = seen(own, ("join /home/u/train.py:8", 90), stage="collate", text=line)
    titles = ["Put less into each batch: batch[0] takes 40.0 MB"] if advised else []
    for made in (own, by_default(own)):
        found = advised_on(made)
        assert [each.title for each in found] == titles
        assert all(each.by_hand and "4 × 2500 × 1000" in each.why for each in found)


@pytest.mark.parametrize(
    ("line", "once"),
    [
        ("encoded = [words.encode(s) for s in samples]", True),
        ("encoded = [torch.tensor(s.tolist()) for s in samples]", False),  # only put together
        ("encoded = [words.encode(s, random.random()) for s in samples]", False),
        ("encoded = words.encode_all(samples)", False),
    ],
)
def test_what_is_done_for_each_sample_need_not_be_done_for_each_batch(tmp_path, line, once):
    source = join(line, "return pad(encoded)")
    stacks = ("join /home/u/train.py:8 > Words.encode /home/u/words.py:3", 60), ("join x.py:9", 40)
    found = advised_on(seen(slow_case(tmp_path, source), *stacks, stage="collate", text=line))
    told = [each for each in found if "once for each" in each.title]
    assert bool(told) == once
    if once:
        assert line in told[0].why and "__getitem__ return the result" in told[0].code
