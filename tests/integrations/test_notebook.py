"""`%load_ext loaderscope` and what a report shows, in a notebook that a real kernel executes."""

import os
import re
from collections.abc import Iterator
from html import escape
from typing import Any

import pytest

from loaderscope.integrations.notebook import MAGIC, NO_ARGUMENTS, NOTHING, without_magic

CELLS = {
    "load": "%load_ext loaderscope\nimport sys, loaderscope, torch\n"
    "from torch.utils.data import DataLoader, Dataset\n"
    "class Rows(Dataset):\n"
    "    def __len__(self):\n        return 4000\n"
    "    def __getitem__(self, index):\n        return torch.tensor([float(index)])\n"
    "loader = DataLoader(Rows(), batch_size=4)",
    "recorded": f"{MAGIC}\n\ntotal = 0.0\n\nfor batch in loader:\n    total += "
    "float(batch.sum())\ntotal",
    "bare": "for batch in loader:\n    pass\nDataLoader._get_iterator.__module__",
    "again": f"{MAGIC}\nfor batch in loader:\n    pass",
    "nothing": f"{MAGIC}\n1 + 1",
    "error": f"{MAGIC}\nfor n, batch in enumerate(loader):\n    if n == 40:\n        1 / 0",
    "bare error": "#\nfor n, batch in enumerate(loader):\n    if n == 40:\n        1 / 0",
    "arguments": f"{MAGIC} loader\n1",
    "timed": f"{MAGIC}\n%%capture\nfor batch in loader:\n    pass",
    "asked": "found = loaderscope.report()\nprint(found)\nfound",
    "unload": "%unload_ext loaderscope",
    "unloaded": f"{MAGIC}\n1",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Name of the cell → what it showed."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    folder = tmp_path_factory.mktemp("notebook")
    env = {**os.environ, "LOADERSCOPE_DIR": str(folder / "runs"), "LOADERSCOPE_STACKS": "0"}
    places = dict.fromkeys(("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR"), str(folder))
    cells = [nbformat.v4.new_code_cell(text) for text in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=cells)
    how = {"allow_errors": True, "resources": {"metadata": {"path": folder}}}
    client = nbclient.NotebookClient(notebook, timeout=250, **how)
    with pytest.MonkeyPatch.context() as patched:
        for name, place in places.items():
            patched.setenv(name, place)
        client.execute(env={**env, **places})
    nbformat.write(notebook, folder / "done.ipynb")
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def shown(outputs: list[Any]) -> list[str]:
    """As text."""
    return [output.data["text/plain"] for output in outputs if "data" in output]


def printed(outputs: list[Any]) -> str:
    return "".join(output.text for output in outputs if output.output_type == "stream")


def errors(outputs: list[Any]) -> list[Any]:
    return [output for output in outputs if output.output_type == "error"]


def test_cells_with_the_magic_are_recorded_and_no_others(outputs):
    assert not outputs["load"]
    value, report = shown(outputs["recorded"])
    assert value == str(float(sum(range(4000))))
    assert "Rows" in report and "1,000" in report and "cell 2, line 5" in report
    assert outputs["recorded"][1].data["text/html"] == f"<pre>{escape(report)}</pre>"
    assert shown(outputs["bare"]) == ["'torch.utils.data.dataloader'"]
    (report,) = shown(outputs["again"])
    assert "1,000" in report and "2,000" not in report and "cell 4, line 2" in report
    assert shown(outputs["nothing"]) == ["2"]
    assert printed(outputs["nothing"]) == f"{NOTHING}\n"
    assert "What recording cost" in printed(outputs["asked"])
    assert len(shown(outputs["asked"])) == 1


def test_an_error_looks_as_it_would_without(outputs: dict[str, list[Any]]) -> None:
    same = []
    for name in ("error", "bare error"):
        (error,) = errors(outputs[name])
        plain = re.sub(r"\x1b\[[\d;]*m|\[\d+\]", "", "\n".join(error.traceback))
        same.append(plain.replace("1 #\n", "1 \n"))
    assert same[0] == same[1] and "ZeroDivisionError" in same[0]
    assert len(shown(outputs["error"])) == 1, "what was recorded until then"


def test_what_stands_beside_the_magic_is_refused_or_heard(outputs):
    (said,) = outputs["arguments"]
    assert said.output_type == "stream" and said.text == f"UsageError: {NO_ARGUMENTS}\n"
    assert len(shown(outputs["timed"])) == 1 and not errors(outputs["timed"])
    assert not outputs["unload"]
    assert "Cell magic `%%loaderscope` not found" in printed(outputs["unloaded"])


def test_only_a_first_line_of_ours_is_taken_away() -> None:
    assert without_magic([f"{MAGIC}\n", "1\n"]) == ["\n", "1\n"]
    for lines in ([], ["1\n"], ["%%time\n", f"{MAGIC}\n"], [f"{MAGIC} x\n", "1\n"]):
        assert without_magic(lines) is lines
    assert without_magic([f"{MAGIC}\n", "%%time\n", "1\n"]) == ["%%time\n", "1\n"]
