from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from loaderscope.profiler import doctor
from loaderscope.profiler.doctor import checks


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def fake_torch(version="2.13.0", devices=0, cuda=None):
    return SimpleNamespace(
        __version__=version,
        version=SimpleNamespace(cuda=cuda, hip=None),
        cuda=SimpleNamespace(is_available=lambda: devices > 0, device_count=lambda: devices),
    )


def loader(**modules):
    def load(name):
        if name not in modules:
            raise ImportError(f"No module named {name!r}")
        return modules[name]

    return load


@pytest.fixture
def healthy(tmp_path):
    """A Linux machine on which everything can be measured but a GPU."""
    return write(tmp_path, {"proc/sys/kernel/yama/ptrace_scope": "0\n"})


@pytest.fixture(autouse=True)
def everything_works(monkeypatch):
    monkeypatch.setattr(doctor.form, "why_python", "")
    for name, found in (("why_not_kept", ""), ("try_stacks", None)):
        monkeypatch.setattr(doctor, name, lambda *given, found=found: found)
    monkeypatch.setattr(doctor, "find_py_spy", lambda environ: "/bin/py-spy")


def examine(root, directory=None, load=None):
    load = load or loader(torch=fake_torch())
    return {one.name: one for one in checks(root, {}, directory or root / "runs", load)}


def test_a_healthy_machine(healthy):
    found = examine(healthy)
    assert len(found) == 8
    unmeasured = {name: check.ok for name, check in found.items() if check.ok is not True}
    assert unmeasured == {"device": None, "nvml": None}
    assert not (healthy / "runs").exists()


def test_this_machine_can_be_examined(monkeypatch):
    monkeypatch.undo()
    found = checks()
    assert len({check.name for check in found}) == len(found) == 8
    assert all(check.finding for check in found)
    assert not any(check.finding.startswith("could not be checked") for check in found)


def test_every_failure_comes_with_a_mend(tmp_path):
    found = examine(tmp_path, directory=Path("/proc/nowhere/runs"), load=loader())
    assert found["run directory"].ok is False and "LOADERSCOPE_DIR" in found["run directory"].fix
    assert found["torch"].ok is False and found["torch"].fix
    assert all(check.fix for check in found.values() if check.ok is False)


def test_a_check_that_fails_is_a_finding(healthy, monkeypatch):
    monkeypatch.setattr(doctor, "_keeping", lambda why: 1 / 0)
    found = examine(healthy)["recording memory"]
    assert found.ok is None and "ZeroDivisionError" in found.finding


@pytest.mark.parametrize(
    ("check", "given", "ok", "fix"),
    [
        (doctor._hot_path, "the extension is not there", None, ""),
        (doctor._keeping, "", True, None),
        (doctor._keeping, "no sealed memory", True, "some µs more"),
        *[(doctor._python_version, each, True, None) for each in ("3.10.1", "3.14.9")],
        (doctor._python_version, "3.15.0rc1", None, ""),
        (doctor._torch_version, "2.3.1", False, ""),
        *[(doctor._torch_version, each, True, None) for each in ("2.4.0", "2.13.0+cpu")],
        *[(doctor._torch_version, each, None, "") for each in ("2.14.0a0", "2.16.0", "3.0")],
    ],
)
def test_releases_and_what_is_compiled_or_kept(check, given, ok, fix):
    torch = check is doctor._torch_version
    verdict, finding, mend = check(loader(torch=fake_torch(given)) if torch else given)
    assert verdict is ok and (given or "outlives") in finding
    assert mend is None if fix is None else fix in mend


def test_devices(tmp_path):
    seen, unseen = (
        examine(tmp_path, load=loader(torch=fake_torch(devices=devices, cuda="13.0")))["device"]
        for devices in (2, 0)
    )
    assert seen.ok is True
    assert unseen.ok is None and "13.0" in unseen.finding and unseen.fix


@pytest.mark.parametrize(
    ("error", "ok", "finding"),
    [(None, True, "2 GPUs"), (RuntimeError("version mismatch"), False, "mismatch")],
)
def test_nvml(tmp_path, error, ok, finding):
    rest = {"nvmlShutdown": lambda: None, "nvmlDeviceGetCount": lambda: 2}
    nvml = SimpleNamespace(nvmlInit=Mock(side_effect=error), **rest)
    write(tmp_path, {"proc/driver/nvidia/version": "NVRM"})
    found = examine(tmp_path, load=loader(pynvml=nvml))["nvml"]
    assert found.ok is ok and finding in found.finding
    found = examine(tmp_path, load=loader())["nvml"]
    assert found.ok is False and "pip install" in found.fix


def test_stacks(healthy, monkeypatch):
    def check(why=None, program="/bin/py-spy"):
        monkeypatch.setattr(doctor, "find_py_spy", lambda environ: program)
        monkeypatch.setattr(doctor, "try_stacks", lambda given: why)
        return examine(healthy)["stacks"]

    assert check().ok is True and check().fix is None and "ptrace_scope" not in check().finding
    missing = check(program=None)
    assert missing.ok is None and "pip install py-spy" in missing.fix
    write(healthy, {"proc/sys/kernel/yama/ptrace_scope": "1\n"})
    assert check().ok is True and "ptrace_scope 1" in check().finding
    denied = check("only root may read stacks here: sudo sysctl kernel.yama.ptrace_scope=1")
    assert denied.ok is None and "only root" in denied.finding
    assert denied.fix.startswith("sudo sysctl")
    odd = check("py-spy did not answer within 20 s")
    assert odd.ok is None and "did not answer" in odd.finding and "unaffected" in odd.fix
