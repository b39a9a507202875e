"""A wheel of the tracked files, installed in a clean environment, works outside the checkout."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import loaderscope
from started import ran

ROOT = Path(__file__).resolve().parents[1]
FLOOR = (3, 10)
SUBPACKAGES = (
    *("profiler", "advisors", "experiment", "fixing", "reports", "tuning", "integrations"),
    *("tui", "cli"),
)
BUILT = {"build", "dist", "__pycache__"}
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def sources() -> list[Path]:
    """The files git tracks or would; outside a checkout, all but what is built."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = ran(listing, cwd=ROOT, check=True).stdout.split("\0")
        found = [Path(name) for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        every = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        found = [
            path
            for path in every
            if not any(part in BUILT or part.startswith(".") for part in path.parts)
        ]
    return sorted(path for path in found if (ROOT / path).is_file())


def run(*command: object, cwd: Path, **env: str) -> str:
    """Standard output of a command that must succeed, without our own paths in its environment."""
    inherited = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    }
    env = {**inherited, **env}
    result = ran(command, cwd=cwd, env=env)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without network: the build backend of the running environment is used."""
    return wheel_of(cloned(tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def wheel_without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, where the compiler is a program that only fails."""
    return wheel_of(cloned(tmp_path_factory.mktemp("plain")), CC=str(shutil.which("false")))


def cloned(folder: Path) -> Path:
    clone = folder / "a-b.c"
    for path in sources():
        (clone / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, clone / path)
    return clone


def wheel_of(source: Path, **env: str) -> Path:
    """Of a folder or a source distribution."""
    out = source.parent / "dist"
    wheel = ["wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    run(*PIP, *wheel, out, source, cwd=source.parent, **env)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a clean environment with the wheel and this one's dependencies."""
    place = tmp_path_factory.mktemp("installed") / "env"
    venv.create(place, with_pip=False, symlinks=True)
    bin_ = place / ("Scripts" if os.name == "nt" else "bin")
    python = bin_ / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = Path(run(python, "-c", code, cwd=place).strip())
    install = ["install", "--quiet", "--no-index", "--no-deps"]
    run(*PIP, "--python", python, *install, wheel, cwd=place)
    # Of folders named in a .pth file, their own .pth files are not read.
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (purelib / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return bin_


def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_the_wheel_has_every_module_of_the_package(wheel: Path) -> None:
    expected = {
        f"loaderscope/{path.as_posix()}"
        for path in sources()
        if path.suffix == ".py" and (len(path.parts) == 1 or path.parts[0] in SUBPACKAGES)
    }
    assert len(expected) > 30
    assert expected == {name for name in names(wheel) if name.endswith(".py")}


def is_compiled(name: str) -> bool:
    parts = r"loaderscope/profiler/native/(_native|_audit|_spawn)\.(.*\.)?(so|pyd)"
    return re.fullmatch(parts, name) is not None


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or shutil.which("cc") is None, reason="no compiler"
)
def test_the_wheel_has_all_compiled_parts(wheel: Path) -> None:
    assert len(list(filter(is_compiled, names(wheel)))) == 3


def test_a_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(tmp_path)!r})"
    run(sys.executable, "-c", code, cwd=cloned(tmp_path / "clone"))
    (source,) = tmp_path.glob("*.tar.gz")
    assert sorted(names(wheel_of(source))) == sorted(names(wheel))


@pytest.mark.skipif(shutil.which("false") is None, reason="no program that fails")
def test_without_a_compiler_the_wheel_lacks_only_that(wheel, wheel_without_compiler):
    plain = set(names(wheel_without_compiler))
    assert not any(map(is_compiled, plain))
    assert {name for name in names(wheel) if not is_compiled(name)} == plain


@pytest.mark.skipif(shutil.which("false") is None, reason="no program that fails")
def test_the_wheel_built_without_a_compiler_records_in_python(wheel_without_compiler, tmp_path):
    with zipfile.ZipFile(wheel_without_compiler) as archive:
        archive.extractall(tmp_path / "unpacked")
    code = (
        "import torch, loaderscope\n"
        "from loaderscope.profiler.native import form\n"
        "loader = loaderscope.watch(torch.utils.data.DataLoader(range(40), batch_size=4))\n"
        "print(sum(map(len, loader)), loaderscope.report(loader).loaders[0].batches, form.native)\n"
    )
    paths = os.pathsep.join(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "unpacked"), paths])}
    env["LOADERSCOPE_DIR"] = str(tmp_path / "runs")
    assert run(sys.executable, "-c", code, cwd=tmp_path, **env).split() == ["40", "10", "None"]


def test_the_wheel_is_typed_and_licensed_and_has_nothing_else(wheel: Path) -> None:
    info = f"loaderscope-{loaderscope.__version__}.dist-info"
    assert {name.split("/")[0] for name in names(wheel)} == {"loaderscope", info}
    inside = {
        name.split("/")[1]
        for name in names(wheel)
        if name.count("/") > 1 and not name.startswith(info)
    }
    assert inside <= set(SUBPACKAGES)
    assert "loaderscope/py.typed" in names(wheel)
    assert any(name.endswith("licenses/LICENSE") for name in names(wheel))


def test_the_wheel_says_its_version_and_floor(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(archive.read(path))
    assert metadata["Version"] == loaderscope.__version__
    assert metadata["Requires-Python"] == f">={FLOOR[0]}.{FLOOR[1]}"
    assert metadata["License-Expression"] == "Apache-2.0"
    needed = [each for each in metadata.get_all("Requires-Dist", ()) if "extra ==" not in each]
    assert needed and not any(each.startswith("torch") for each in needed)


def test_the_version_has_release_notes(tmp_path: Path) -> None:
    notes = (sys.executable, ROOT / ".ci/release_notes.py")
    assert "### Added" in run(*notes, loaderscope.__version__, cwd=tmp_path)
    asked = [*map(str, notes), "9.9.9"]
    told = ran(asked)
    assert told.returncode == 1 and "9.9.9" in told.stderr


@pytest.mark.parametrize(
    "command", [["loaderscope"], ["python", "-m", "loaderscope"]], ids=" ".join
)
def test_the_command_works_outside_the_checkout(installed, tmp_path, command):
    for option, said in (("--help", "demo"), ("--version", loaderscope.__version__)):
        assert said in run(installed / command[0], *command[1:], option, cwd=tmp_path)


def test_a_loop_is_recorded_and_reported_outside_the_checkout(installed, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "from torch.utils.data import DataLoader\n"
        "if __name__ == '__main__':\n"
        "    print(sum(len(batch) for batch in DataLoader(range(40), batch_size=4, "
        "num_workers=1)))\n"
    )
    command, env = installed / "loaderscope", {"LOADERSCOPE_DIR": str(tmp_path / "runs")}
    assert run(command, "run", "train.py", cwd=tmp_path, **env).strip() == "40"
    code = "import loaderscope; print(loaderscope.__file__)"
    where = run(installed / "python", "-c", code, cwd=tmp_path).strip()
    assert Path(where).resolve().is_relative_to(installed.parent.resolve()), "not the checkout"
    text = run(command, "report", "--format", "json", cwd=tmp_path, **env)
    assert loaderscope.Report.from_json(text).loaders[0].batches == 10


def test_a_clone_may_have_any_name(tmp_path: Path) -> None:
    clone = tmp_path / "any-name"
    clone.symlink_to(ROOT)
    told = ran(
        [sys.executable, "-m", "pytest", "-q", f"{clone}/tests/advisors/schema/test_evidence.py"]
    )
    assert told.returncode == 0, told.stdout
