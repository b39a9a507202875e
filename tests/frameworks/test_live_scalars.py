"""Live figures of one training, read back by each library's own means."""

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from running import installed, needs, output_of, program, result

pytestmark = pytest.mark.timeout(600)

# By name in the program, the module that must be there.
LIBRARIES = {"tensorboard": "tensorboard", "prometheus": "prometheus_client", "wandb": "wandb"}
FIGURES = {"wait_share", "batches_per_s", "make_s", "headroom"}
BATCHES = 48


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder that a training's figures went to, and what libraries keep elsewhere."""
    folder = tmp_path_factory.mktemp("scalars")
    names = [name for name, module in LIBRARIES.items() if installed(module)]
    if not names:
        pytest.skip("none of the libraries is installed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOADERSCOPE_DIR", str(folder / "runs"))
        patch.setenv("WANDB_MODE", "offline")
        said = output_of(*program("live_scalars.py"), str(folder), *names)
        assert "got no figures" not in said
        assert result(said) == ["23.500000"]
        yield folder


def test_tensorboard_has_them(logged: Path) -> None:
    needs("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(logged / "events")).Reload()
    assert set(read.Tags()["scalars"]) == {f"loaderscope/Rows/{name}" for name in FIGURES}
    waits = read.Scalars("loaderscope/Rows/wait_share")
    assert waits[-1].step == BATCHES and all(0 <= event.value <= 1 for event in waits)
    steps = [event.step for event in waits]
    assert steps == sorted(set(steps)) and len(steps) > 1


def test_wandb_has_them_and_the_trainings_steps_keep_their_numbers(logged: Path) -> None:
    needs("wandb")
    rows, metrics = wandb_log(next(logged.glob("wandb/latest-run/*.wandb")))
    assert metrics == [("loaderscope/*", "loaderscope/batches")]
    own = {row["loss"]: row["_step"] for row in rows if "loss" in row}
    assert list(own.values()) == [0, 1, 2, 100]
    ours = [row for row in rows if "loaderscope/batches" in row]
    assert len(ours) > 1 and ours[-1]["loaderscope/batches"] == BATCHES
    assert all({f"loaderscope/Rows/{name}" for name in FIGURES} <= row.keys() for row in ours)
    steps = [row["_step"] for row in rows]
    assert steps == sorted(set(steps)), "nothing was dropped or told twice"


def wandb_log(path: Path) -> tuple[list[dict[str, float]], list[tuple[str, str]]]:
    """Rows of an offline run's history, and metrics with what they are drawn over. As LevelDB's logs,
    after 7 bytes, the file is blocks of 32 KiB with records of (checksum, length, kind)."""
    from wandb.proto import wandb_internal_pb2 as messages

    data, at, whole = path.read_bytes(), 7, b""
    rows, metrics = [], []
    while at + 7 <= len(data):
        left = 32_768 - at % 32_768
        if left < 7:
            at += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, at)
        whole += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind not in (1, 4):  # whole, or the last part
            continue
        record = messages.Record.FromString(whole)
        whole = b""
        if record.WhichOneof("record_type") == "history":
            items = [(each.key or "/".join(each.nested_key), each) for each in record.history.item]
            rows.append({name: json.loads(each.value_json) for name, each in items})
        elif record.WhichOneof("record_type") == "metric":
            metrics.append((record.metric.glob_name, record.metric.step_metric))
    return rows, metrics


def test_prometheus_has_them(logged: Path) -> None:
    needs("prometheus_client")
    from prometheus_client.parser import text_string_to_metric_families

    text = (logged / "train.prom").read_text()
    families = {family.name: family.samples for family in text_string_to_metric_families(text)}
    for name in FIGURES:
        (sample,) = families[f"loaderscope_{name}"]
        assert sample.labels["loader"] == "Rows" and sample.value >= 0
    assert families["loaderscope_live"][0].value == 0, "the run has ended"
