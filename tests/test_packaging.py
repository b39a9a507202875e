"""A wheel of the tracked files, installed in a clean environment, works outside the checkout."""

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
BUILT = r"/(build|dist|__pycache__|\..*)/"
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def sources() -> list[Path]:
    """The files git tracks or would; outside a checkout, all but what is built."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = ran(listing, cwd=ROOT, check=True).stdout.split("\0")
        found = [Path(name) for name in names if name]
    except (OSError, subprocess.CalledProcessError):
        every = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        found = [path for path in every if not re.search(BUILT, f"/{path.as_posix()}/")]
    return sorted(path for path in found if (ROOT / path).is_file())


def run(*command: object, cwd: Path, **env: str) -> str:
    """Standard output of a command that must succeed, without our own paths in its environment."""
    ours = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    inherited = {name: value for name, value in os.environ.items() if name not in ours}
    result = ran(command, cwd=cwd, env={**inherited, **env})
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
    python = place / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    purelib = Path(run(python, "-c", code, cwd=place).strip())
    install = ["install", "--quiet", "--no-index", "--no-deps"]
    run(*PIP, "--python", python, *install, wheel, cwd=place)
    # Of folders named in a .pth file, their own .pth files are not read.
    paths = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (purelib / "dependencies.pth").write_text("\n".join(paths) + "\n")
    return python.parent


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


def test_without_a_compiler_the_wheel_lacks_only_that_and_records_in_python(
    wheel, wheel_without_compiler, tmp_path
):
    plain = {name for name in names(wheel) if not is_compiled(name)}
    assert plain == set(names(wheel_without_compiler))
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


def test_the_wheel_is_typed_and_licensed_says_its_version_and_has_nothing_else(wheel):
    info = f"loaderscope-{loaderscope.__version__}.dist-info"
    inside = [name.split("/") for name in names(wheel)]
    assert {top for top, *_ in inside} == {"loaderscope", info}
    folders = {parts[1] for parts in inside if len(parts) > 2 and parts[0] != info}
    assert folders <= set(SUBPACKAGES)
    assert {"loaderscope/py.typed", f"{info}/licenses/LICENSE"} <= set(names(wheel))
    with zipfile.ZipFile(wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
    assert metadata["Version"] == loaderscope.__version__
    assert metadata["Requires-Python"] == f">={FLOOR[0]}.{FLOOR[1]}"
    assert metadata["License-Expression"] == "Apache-2.0"
    needed = [each for each in metadata.get_all("Requires-Dist", ()) if "extra ==" not in each]
    assert needed and not any(each.startswith("torch") for each in needed)


def test_the_version_has_release_notes(tmp_path: Path) -> None:
    notes = (sys.executable, ROOT / ".ci/release_notes.py")
    assert "### Added" in run(*notes, loaderscope.__version__, cwd=tmp_path)
    told = ran([*notes, "9.9.9"])
    assert told.returncode == 1 and "9.9.9" in told.stderr


@pytest.mark.parametrize("command", ["loaderscope", "python -m loaderscope"])
def test_the_command_works_outside_the_checkout(installed, tmp_path, command):
    program, *words = command.split()
    for option, said in (("--help", "demo"), ("--version", loaderscope.__version__)):
        assert said in run(installed / program, *words, option, cwd=tmp_path)


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
