"""Slurm on this host alone, for `srun`: two nodes with host names (slurm-wlm, munge, root)."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

DAEMONS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
NODES = ("loaderscope-node0", "loaderscope-node1")
CONFIGURATION = """\
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName={nodes[0]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=4 State=UNKNOWN
NodeName={nodes[1]} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=4 State=UNKNOWN
PartitionName=all Nodes={nodes[0]},{nodes[1]} Default=YES State=UP
"""


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """The variables by which `srun` finds it. Skips where it cannot be had."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])
    missing = [name for name in DAEMONS if shutil.which(name, path=path) is None]
    renamed = subprocess.run(
        ["unshare", "--uts", "hostname", "other"], capture_output=True, check=False
    )
    if missing or os.geteuid() or renamed.returncode:
        pytest.skip(f"no Slurm here: {', '.join(missing) or 'host names cannot be changed'}")
    if len(str(folder)) > 80:  # the path of a socket is short
        pytest.skip("the folder for its socket is too deep")
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    configuration = folder / "slurm.conf"
    told = {"host": socket.gethostname(), "folder": folder, "nodes": NODES, "ports": free_ports(3)}
    configuration.write_text(CONFIGURATION.format(**told))
    env = {**os.environ, "PATH": path, "SLURM_CONF": str(configuration)}
    munge = [
        "--force",
        f"--socket={folder}/munge.sock",
        f"--key-file={key}",
        f"--seed-file={folder}/munge.seed",
    ]
    munge += [f"--log-file={folder}/munge.log", f"--pid-file={folder}/munge.pid"]
    commands = [["munged", "--foreground", *munge], ["slurmctld", "-D"]]
    named = "hostname {node} && exec slurmd -D -N {node}"
    commands += [["unshare", "--uts", "sh", "-c", named.format(node=node)] for node in NODES]
    with ExitStack() as stack, (folder / "log.txt").open("w") as log:
        for command in commands:
            daemon = subprocess.Popen(command, env=env, stdout=log, stderr=log)
            stack.callback(end, daemon)
        for _ in range(100):
            seen = subprocess.run(
                ["sinfo", "-h", "-t", "idle", "-o", "%D"], env=env, capture_output=True, check=False
            )
            if seen.stdout.strip() == b"2":
                break
            time.sleep(0.2)
        else:
            pytest.fail("its nodes did not come up: " + (folder / "log.txt").read_text()[-2000:])
        yield {"SLURM_CONF": str(configuration), "PATH": path}


def end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(20)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
