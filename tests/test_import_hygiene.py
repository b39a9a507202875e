"""Imports stay light. Each is made in a process of its own, since this one has imported
everything."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAVY = (
    "torch",
    "numpy",
    "textual",
    "plotly",
    "rich",
    "click",
    "psutil",
    "pynvml",
    "platformdirs",
    "msgspec",
)
LOOK = (
    "import json, sys; {code}; print(json.dumps(sorted({{name.split('.')[0] for name in "
    "sys.modules}})))"
)


def loaded(code: str, *options: str) -> set[str]:
    """The top-level modules a fresh Python has after running `code`."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, *options, "-c", LOOK.format(code=code)]
    result = subprocess.run(
        command, env=env, capture_output=True, text=True, check=True, timeout=200
    )
    return set(json.loads(result.stdout))


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """What Python has loaded by itself (an environment's .pth files may load things)."""
    return loaded("pass")


def test_import_loaderscope_loads_nothing_heavy(bare: set[str]) -> None:
    got = loaded("import loaderscope") - bare
    assert "loaderscope" in got
    assert not got & set(HEAVY)


def test_the_public_names_are_listed_without_loading_them(bare: set[str]) -> None:
    got = loaded("import loaderscope; assert 'watch' in dir(loaderscope)") - bare
    assert not got & set(HEAVY)


def test_the_commands_load_no_torch_before_they_need_it(bare: set[str]) -> None:
    got = loaded("import loaderscope.cli") - bare
    assert "click" in got
    assert not got & {"torch", "numpy", "textual", "plotly"}


def test_the_sampler_process_loads_neither_torch_nor_numpy(bare: set[str]) -> None:
    got = loaded("import loaderscope.profiler.daemon.loop") - bare
    assert "psutil" in got
    assert not got & {"torch", "numpy", "rich", "click"}


def test_no_module_of_the_profiler_loads_torch_by_itself(bare: set[str]) -> None:
    """Under `run`, importing torch is what starts us. Whichever module of ours a process imports
    first (a spawned worker unpickles its target before anything else), none may be in the middle of
    its own import when torch comes."""
    code = (
        "import importlib, pkgutil, loaderscope.profiler as profiler; found = [m.name for m in "
        "pkgutil.walk_packages(profiler.__path__, profiler.__name__ + '.')]; skipped = "
        "('.__main__', '.sitecustomize'); [importlib.import_module(name) for name in found if not "
        "name.endswith(skipped)]"
    )
    got = loaded(code) - bare
    assert "psutil" in got
    assert not got & {"torch", "torchdata"}


def test_watching_loads_no_user_interface(bare: set[str]) -> None:
    code = "import loaderscope; loaderscope.watch; loaderscope.watch_all"
    got = loaded(code) - bare
    assert not got & {"rich", "click", "textual", "plotly"}


def test_live_figures_load_no_tracker_and_no_torch(bare: set[str]) -> None:
    got = (
        loaded("import loaderscope.integrations.scalars, loaderscope.integrations.notebook") - bare
    )
    assert not got & {
        "torch",
        "tensorboard",
        "wandb",
        "mlflow",
        "opentelemetry",
        "prometheus_client",
        "IPython",
    }


def test_an_unknown_name_is_an_attribute_error() -> None:
    import loaderscope

    with pytest.raises(AttributeError, match="no_such_name"):
        loaderscope.no_such_name  # noqa: B018
    for name in loaderscope.__all__:
        assert getattr(loaderscope, name) is not None
