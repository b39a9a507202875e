"""Environments of benchmarks in which other tools are installed, beside this one and its torch."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
PLACE = HERE / ".env-peers"
PEERS = ["py-spy", "traceml-ai"]


def environment(place: Path = PLACE, peers: list[str] = PEERS) -> str:
    """The Python of the peers' environment, made if need be. Raises CalledProcessError where they
    cannot be had.

    It sees the packages of the running environment, so that every tool is measured with the same
    torch.
    """
    import loaderscope

    home = Path(loaderscope.__path__[0]).parent
    seen = list(
        dict.fromkeys([str(home), sysconfig.get_path("purelib"), sysconfig.get_path("platlib")])
    )
    made = json.dumps([platform.python_version(), sys.base_prefix, seen, peers])
    stamp = place / "made.json"
    python = place / "bin" / "python"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != made:
        shutil.rmtree(place, ignore_errors=True)
        venv.create(place, with_pip=True)
        named = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
        purelib = subprocess.run(named, check=True, capture_output=True, text=True).stdout.strip()
        Path(purelib, "seen.pth").write_text("\n".join(seen) + "\n", encoding="utf-8")
        constraints = HERE.parent / "constraints.txt"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        # Standard output is for the results.
        subprocess.run(
            [*pip, "-c", str(constraints), *peers], check=True, env=env, stdout=sys.stderr
        )
        # Those that the running environment has too: their commands are looked for beside this
        # Python.
        subprocess.run(
            [*pip, "--ignore-installed", "--no-deps", *peers],
            check=True,
            env=env,
            stdout=sys.stderr,
        )
        stamp.write_text(made, encoding="utf-8")
    return str(python)
