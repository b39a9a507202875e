"""Who is at the other end of a pipe or of a socket: a child, a server of this host, or a peer in
the network."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import psutil

from ..procfs import read

# linux/netlink.h, linux/sock_diag.h, linux/unix_diag.h
NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST = 4, 20, 1
UDIAG_SHOW_PEER, UNIX_DIAG_PEER = 4, 2
MOST_DESCRIPTORS = 20_000  # looked at to find whose a socket is


class Peer(NamedTuple):
    """`kind` is "child", "pipe", "network", "server", "process" or "unknown"; `pid` is known of a
    child and of a server."""

    kind: str
    what: str = ""
    pid: int | None = None


def peer_of(pid: int, number: int, target: str) -> Peer:
    """The other end of a descriptor of this process, which links to `target`: "pipe:[91]",
    "socket:[92]". Never raises."""
    if target.startswith("pipe:"):
        owner = _owner(iter(children(pid)), target)
        return Peer("child", _name(owner), owner) if owner is not None else Peer("pipe")
    with suppress(OSError, ValueError, IndexError, struct.error, psutil.Error):
        every = psutil.net_connections("inet")
        here = next((each for each in every if (each.pid, each.fd) == (pid, number)), None)
        if here is None:
            return _server(_local_peer(pid, int(target[len("socket:[") : -1])), "")
        if not here.raddr:
            return Peer("network")
        host = here.raddr.ip.removeprefix("::ffff:")
        if not host.startswith("127.") and host != "::1":
            host = f"[{host}]" if ":" in host else host
            return Peer("network", f"{host}:{here.raddr.port}")
        ends = here.raddr, here.laddr
        other = next((each.pid for each in every if (each.laddr, each.raddr) == ends), None)
        return _server(other, f"{host}:{here.raddr.port}")
    return Peer("unknown")


def children(pid: int) -> list[int]:
    """Empty where the kernel does not list them."""
    with suppress(OSError, ValueError):
        return [int(each) for each in read(f"/proc/{pid}/task/{pid}/children").split()]
    return []


def _server(pid: int | None, what: str) -> Peer:
    return (
        Peer("process", what)
        if pid is None
        else Peer("server", f"{_name(pid)} {what}".strip(), pid)
    )


def _local_peer(pid: int, inode: int) -> int | None:
    """The process at the other end of a local socket."""
    peer = _unix_peer(inode)
    every = (each for each in psutil.pids() if each != pid)
    return _owner(every, f"socket:[{peer}]") if peer else None


def _owner(pids: Iterator[int], target: str) -> int | None:
    """The first of these processes that has this pipe or socket open."""
    left = MOST_DESCRIPTORS
    for pid in pids:
        with suppress(OSError):
            folder = f"/proc/{pid}/fd"
            for number in os.listdir(folder):
                left -= 1
                if os.readlink(f"{folder}/{number}") == target:
                    return pid
        if left < 0:
            break
    return None


def _name(pid: int) -> str:
    with suppress(OSError):
        return read(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()
    return ""


def _unix_peer(inode: int) -> int | None:
    """The inode at the other end of a local socket (sock_diag(7))."""
    ask = struct.pack("=BBHIIIii", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, inode, UDIAG_SHOW_PEER, -1, -1)
    head = struct.pack("=IHHII", 16 + len(ask), SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        link.settimeout(0.1)
        link.sendall(head + ask)
        data = link.recv(4096)
    if struct.unpack_from("=H", data, 4)[0] != SOCK_DIAG_BY_FAMILY:
        return None
    at = 16 + 16  # the header, and what is said of the socket
    while at + 8 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if kind == UNIX_DIAG_PEER:
            return int(struct.unpack_from("=I", data, at + 4)[0])
        at += max(4, (length + 3) & ~3)
    return None
