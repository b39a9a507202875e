"""Build the compiled form with AddressSanitizer and UBSan in it, and run the tests that record on it: every
read and write of ours. `make test-sanitize` calls this.

    python tests/sanitize.py [PYTEST ARGS]      where they name no test, TESTS are run

It works on a copy of the checkout with extensions of its own, in build/, so that those in use stay as they are. Child
processes (workers, samplers) run the same copy and are checked too: what they find stands in files, and any such file
fails the run, whatever became of the process.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "tests/harmless",
    *(f"tests/integration/test_{name}.py" for name in ("measures", "survival", "fetch_probe")),
    *(f"tests/profiler/native/test_{name}.py" for name in ("forms", "device_forms")),
    *(f"tests/profiler/record/device/test_{name}.py" for name in ("copies", "device_clock")),
    "tests/profiler/record/fetch_probe/test_probe.py",
)
EXTENSIONS = {"_native": "native.c", "_audit": "audit.c", "_spawn": "spawn.c"}
WARN = ("-Wall", "-Wextra", "-Wno-cast-function-type")
SANITIZE = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer")
COMPILE = ("-std=c11", *WARN, "-g", "-O1", "-fPIC", "-shared", *SANITIZE)


def copied(to: Path) -> Path:
    """The checkout's files as the package `loaderscope` in a folder; the copy's caches are kept."""
    package = to / "loaderscope"
    listed = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    shutil.rmtree(package, ignore_errors=True)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, package / name)
    return package


def output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def library(name: str) -> str:
    """Where gcc has this library."""
    told = output("gcc", f"-print-file-name={name}")
    if not os.path.isabs(told):
        sys.exit(f"sanitize: gcc has no {name}: install gcc with its sanitizers, and g++")
    return os.path.realpath(told)


def tests(package: Path, chosen: list[str]) -> list[str]:
    """Arguments for pytest: those given, with TESTS where they name none."""
    named = any((package / argument.partition("::")[0]).exists() for argument in chosen)
    return chosen if named else [*chosen, *(name for name in TESTS if (package / name).exists())]


def main(chosen: list[str]) -> int:
    home = ROOT / "build" / "sanitize-memory"
    package = copied(home)
    suffix, include = sysconfig.get_config_var("EXT_SUFFIX"), sysconfig.get_paths()["include"]
    native = package / "profiler" / "native"
    for name, source in EXTENSIONS.items():
        files = (native / "src" / source, "-o", native / f"{name}{suffix}")
        subprocess.run(["gcc", *COMPILE, f"-I{include}", *map(str, files)], check=True)
    found = home / "found"
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir()
    common = f"abort_on_error=1:halt_on_error=1:log_path={found}/report"
    environment = {
        **os.environ,
        "PYTHONPATH": str(home),
        # Torch throws exceptions: AddressSanitizer must find who does that before it is loaded.
        "LD_PRELOAD": f"{library('libasan.so')} {library('libstdc++.so')}",
        # Python and torch keep memory until they end; one object's end is not the next's beginning.
        "ASAN_OPTIONS": f"detect_leaks=0:allocator_may_return_null=1:{common}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{common}",
        "PYTHONMALLOC": "malloc",
        # Seen with gcc 12: a forked worker, bare too, that waits for ever; rarer with fewer threads.
        "OMP_NUM_THREADS": "1",
        # Tests ask for it: AddressSanitizer reserves terabytes of addresses, so RLIMIT_AS cannot be tried.
        "LOADERSCOPE_SANITIZED": "1",
    }
    says_so = (
        "from loaderscope.profiler.native import form; import ctypes; assert "
        f"form.native.__file__.startswith({str(home)!r}), form.native; assert "
        "ctypes.CDLL(None).__asan_region_is_poisoned"
    )
    subprocess.run([sys.executable, "-c", says_so], env=environment, check=True)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *tests(package, chosen)]
    code = subprocess.run(command, env=environment, cwd=package, check=False).returncode
    reports = sorted(found.iterdir())
    for report in reports:
        print(f"\n{report}\n{report.read_text(errors='replace')[:4000]}", file=sys.stderr)
    found_ = f"{len(reports)} findings of AddressSanitizer and UBSan"
    print(f"sanitize: {found_}; pytest ended with {code}", file=sys.stderr)
    return 1 if reports else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
