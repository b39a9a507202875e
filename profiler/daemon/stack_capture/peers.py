"""Who is at the other end of a pipe or of a socket: a child, a server of this host, or a peer in
the network."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..procfs import read, read_all

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

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


def peer_of(pid: int, target: str) -> Peer:
    """The other end of a descriptor of this process, which links to `target`: "pipe:[91]",
    "socket:[92]". Never raises."""
    if target.startswith("pipe:"):
        owner = _owner(iter(children(pid)), target)
        return Peer("child", _name(owner), owner) if owner is not None else Peer("pipe")
    with suppress(OSError, ValueError, IndexError, struct.error):
        inode = int(target[len("socket:[") : -1])
        rows = _rows(pid)
        if inode in rows:
            address = rows[inode][1]
            found = _ip_address(address)
            if not found.is_loopback:
                host = f"[{found}]" if found.version == 6 else str(found)
                return Peer("network", f"{host}:{address[1]}")
            other = next((each for each, ends in rows.items() if ends == rows[inode][::-1]), None)
            return _server(pid, other, f"{found}:{address[1]}")
        return _server(pid, _unix_peer(inode), "")
    return Peer("unknown")


def children(pid: int) -> list[int]:
    """Empty where the kernel does not list them."""
    with suppress(OSError, ValueError):
        return [int(each) for each in read(f"/proc/{pid}/task/{pid}/children").split()]
    return []


def _server(pid: int, inode: int | None, what: str) -> Peer:
    every = (int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != pid)
    owner = _owner(every, f"socket:[{inode}]") if inode else None
    if owner is None:
        return Peer("process", what)
    return Peer("server", f"{_name(owner)} {what}".strip(), owner)


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


Address = tuple[str, int]


def _rows(pid: int) -> dict[int, tuple[Address, Address]]:
    """By inode: the local and the remote address of the TCP and UDP sockets that it could have."""
    found: dict[int, tuple[Address, Address]] = {}
    for table in ("tcp", "tcp6", "udp", "udp6"):
        with suppress(OSError):
            for line in read_all(f"/proc/{pid}/net/{table}").splitlines()[1:]:
                fields = line.decode().split()
                ends = [fields[at].partition(":") for at in (1, 2)]
                local, remote = ((host, int(port, 16)) for host, _, port in ends)
                found[int(fields[9])] = local, remote
    return found


def _ip_address(address: Address) -> IPv4Address | IPv6Address:
    """'0100007F' is 127.0.0.1: words of four bytes in the order of the machine."""
    from ipaddress import ip_address  # seldom needed

    words = struct.unpack(f">{len(address[0]) // 8}I", bytes.fromhex(address[0]))
    found = ip_address(struct.pack(f"={len(words)}I", *words))
    return getattr(found, "ipv4_mapped", None) or found


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
