"""Imports stay light; each in a process of its own, since this one has imported everything."""

import pytest

from started import here, python

SHOWING = ["rich", "click", "textual", "plotly"]
HEAVY = ["torch", "numpy", "psutil", "pynvml", "platformdirs", "msgspec", *SHOWING]
TRACKERS = ["tensorboard", "wandb", "mlflow", "opentelemetry", "prometheus_client", "IPython"]
LOOK = "import sys; {code}; print(*sorted({{name.split('.')[0] for name in sys.modules}}))"


def loaded(code: str) -> set[str]:
    """The top-level modules a fresh Python has after running `code`."""
    return set(python("-c", LOOK.format(code=code), env=here(), check=True).stdout.split())


@pytest.fixture(scope="module")
def bare() -> set[str]:
    """What Python has loaded by itself (an environment's .pth files may load things)."""
    return loaded("pass")


# Torch's import starts us: no module of ours may be in the middle of its own import then.
ALL_OF_THE_PROFILER = (
    "import importlib, pkgutil, loaderscope.profiler as profiler; found = [m.name for m in "
    "pkgutil.walk_packages(profiler.__path__, profiler.__name__ + '.')]; skipped = "
    "('.__main__', '.sitecustomize'); [importlib.import_module(name) for name in found if not "
    "name.endswith(skipped)]"
)
LOADS = {  # code: what it loads, and what it does not
    "import loaderscope; assert 'watch' in dir(loaderscope)": ("loaderscope", HEAVY),
    "import loaderscope.cli": ("click", ["torch", "numpy", "textual", "plotly"]),
    "import loaderscope.profiler.daemon.loop": ("psutil", ["torch", "numpy", "rich", "click"]),
    ALL_OF_THE_PROFILER: ("psutil", ["torch", "torchdata"]),
    "import loaderscope; loaderscope.watch; loaderscope.watch_all": ("loaderscope", SHOWING),
    "import loaderscope.integrations.scalars, loaderscope.integrations.notebook": (
        "loaderscope",
        ["torch", *TRACKERS],
    ),
}


@pytest.mark.parametrize("code", LOADS)
def test_imports_are_light(code: str, bare: set[str]) -> None:
    something, nothing = LOADS[code]
    got = loaded(code) - bare
    assert something in got
    assert not got.intersection(nothing)


def test_an_unknown_name_is_an_attribute_error() -> None:
    import loaderscope

    with pytest.raises(AttributeError, match="no_such_name"):
        loaderscope.no_such_name  # noqa: B018
    for name in loaderscope.__all__:
        assert getattr(loaderscope, name) is not None
