"""Messages of rank schedules over a connection between every two ranks of a group, in the thread of the call.

A message is a header of 24 bytes and its data: number of the call, tag, length. Both ends know the header of the next message,
so header and data are read at once. Where the calls of ranks differed, messages of that call may be left: a later call reads
headers first and drops what is older than itself.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import torch

from opticcl.errors import ExecutionError
from opticcl.execute.loop import Exchange

__all__ = ["Connections", "bytes_of"]

HEADER = struct.Struct("<QQQ")
HELLO = struct.Struct("<32sI")
"""What a rank says first: a word from the store, which others do not know, and its rank."""
SIOCGIFADDR = 0x8915
"""Request of the IPv4 address of an interface (linux/sockios.h)."""
TURN_S = 0.1
"""Longest wait before the timeout of the group is compared [s]."""
DROPPED_BYTES = 1 << 16
"""Most bytes of a message of an earlier call that are read at once [bytes]."""


class _Peer:
    """The connection to a rank.

    Args: connection: to it.
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(TURN_S)
        self.receiving, self.sending = connection, connection.dup()
        self.sending.setblocking(False)
        self.queue: deque[memoryview] = deque()
        self.given = self.sent = 0  # bytes since the start

    def send(self, *parts: memoryview) -> None:
        """Send parts after those in the queue, as far as the connection takes them.

        Raises: OSError: it is closed.
        """
        for part in parts:
            self.given += len(part)
            self.queue.append(part)
        while self.queue:
            try:
                sent = self.sending.sendmsg(self.queue)
            except BlockingIOError:
                return
            self.sent += sent
            if self.sent == self.given:
                self.queue.clear()
                return
            while sent >= len(self.queue[0]):
                sent -= len(self.queue.popleft())
            self.queue[0] = self.queue[0][sent:]


class _Arrival:
    """A message that is awaited.

    Args:
        connection: that it comes from.
        due: header that it has.
        data: where it is stored.
        ordered: whether the header is read before the data.
    """

    __slots__ = ("_connection", "_data", "_dropped", "_due", "_header", "_ordered", "missing")

    def __init__(self, connection: socket.socket, due: bytes, data: memoryview, ordered: bool) -> None:
        self._connection, self._due, self._data, self._ordered = connection, due, data, ordered
        self._header = memoryview(bytearray(HEADER.size))
        self.missing = HEADER.size + len(data)  # bytes
        self._dropped = 0

    def read(self) -> None:
        """Wait for a turn, and read what has arrived.

        Raises: TimeoutError: there is nothing. OSError: the connection is closed. ValueError: another message arrives.
        """
        if self._dropped:
            self._dropped -= self._some(memoryview(bytearray(min(self._dropped, DROPPED_BYTES))))
            return
        of_data = len(self._data)
        of_header = self.missing - of_data
        if of_header <= 0:
            self.missing -= self._some(self._data[of_data - self.missing :])
            return
        header = self._header[HEADER.size - of_header :]
        self.missing -= self._some(header) if self._ordered else self._some(header, self._data)
        if self.missing <= of_data and self._header != self._due:
            call, _, length = HEADER.unpack(self._header)
            if not self._ordered or call >= HEADER.unpack(self._due)[0]:
                raise ValueError
            self.missing, self._dropped = HEADER.size + of_data, length

    def _some(self, *parts: memoryview) -> int:
        count: int = self._connection.recvmsg_into(parts)[0]
        if not count:
            raise ConnectionResetError
        return count


class Connections:
    """Carries the messages of schedules between the ranks of a group. Every rank of the group makes one.

    Args:
        store: of torch, for this group alone.
        rank, size: of this process in the group.
        timeout: longest duration of a message, now.
    Raises: ExecutionError: a rank does not connect.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: Callable[[], timedelta]) -> None:
        self._rank, self._size, self._timeout = rank, size, timeout
        self.label = "init_process_group"
        self.call = 0
        self.ordered = self.underway = False
        self._peers: dict[int, _Peer] = {}
        address, family = own_address()
        with socket.socket(family) as listening:
            listening.bind((address, 0))
            listening.listen(size)
            listening.settimeout(timeout().total_seconds())
            word = uuid.uuid4().hex
            store.set(f"address/{rank}", f"{word} {listening.getsockname()[1]} {address}")
            try:
                for peer in range(rank):
                    store.wait([f"address/{peer}"], timeout())
                    theirs, port, host = store.get(f"address/{peer}").decode().split()
                    connection = socket.create_connection((host, int(port)), timeout().total_seconds())
                    connection.sendall(HELLO.pack(theirs.encode(), rank))
                    self._peers[peer] = _Peer(connection)
                while len(self._peers) < size - 1:
                    connection, _ = listening.accept()
                    connection.settimeout(timeout().total_seconds())
                    said, peer = HELLO.unpack(connection.recv(HELLO.size, socket.MSG_WAITALL).ljust(HELLO.size, b"\0"))
                    if said == word.encode() and rank < peer < size:
                        self._peers[peer] = _Peer(connection)
                    else:
                        connection.close()
            except (OSError, RuntimeError) as error:
                absent = min(set(range(size)) - {rank, *self._peers})
                raise self._failure(-1, absent, str(error).splitlines()[0]) from None

    def run(self, exchanges: Iterator[Exchange], tag: int = 0) -> None:
        """Carry the messages of all steps.

        Args:
            exchanges: of this rank.
            tag: the same on all ranks.
        Raises: ExecutionError: a rank does not answer, or its connection is closed.
        """
        self.underway = True
        for exchange in exchanges:
            self.post(exchange, tag)()
        self.underway = False

    def post(self, exchange: Exchange, tag: int) -> Callable[[], None]:
        """Begin to send the messages of one step; returns a function that receives those of the others, and waits for all.

        Messages of a step that was posted before are received before.

        Args:
            exchange: of this rank; at most one message to and from each other.
            tag: the same on all ranks.
        Raises: ExecutionError: a rank does not answer, or its connection is closed; also by that function.
        """
        ends = []
        for peer, buffer in exchange.sends:
            data, other = bytes_of(buffer), self._peers[peer]
            try:
                other.send(memoryview(HEADER.pack(self.call, tag, len(data))), data)
            except OSError as error:
                raise self._failure(exchange.step, peer, _reason(error)) from None
            if other.queue:
                ends.append((peer, other.given))
        return partial(self._wait, exchange, tag, ends)

    def _wait(self, exchange: Exchange, tag: int, ends: list[tuple[int, int]]) -> None:
        """Receive the messages of one step, and send until each connection has sent as many bytes as stated."""
        arrivals = []
        for peer, buffer in exchange.recvs:
            data = bytes_of(buffer)
            due = HEADER.pack(self.call, tag, len(data))
            arrivals.append((peer, _Arrival(self._peers[peer].receiving, due, data, self.ordered)))
        late = None
        try:
            if ends:
                self._send_rest(exchange.step, ends, dict(arrivals))
            for peer, arrival in arrivals:
                while arrival.missing:
                    try:
                        arrival.read()
                    except TimeoutError:
                        late = self._checked(late, exchange.step, peer)
                    except (OSError, ValueError) as error:
                        raise self._failure(exchange.step, peer, _reason(error)) from None
        except ExecutionError:
            raise
        except BaseException:  # of a signal: what was received is not known
            self.close()
            raise

    def _send_rest(self, step: int, ends: list[tuple[int, int]], arrivals: dict[int, _Arrival]) -> None:
        """Send until each connection has sent as many bytes as stated, and receive meanwhile what arrives."""
        late = None
        while left := [peer for peer, end in ends if self._peers[peer].sent < end]:
            poll, of = select.poll(), dict[int, int]()
            for peer in {*left, *(peer for peer, arrival in arrivals.items() if arrival.missing)}:
                awaited = peer in arrivals and arrivals[peer].missing
                descriptor = self._peers[peer].sending.fileno()
                of[descriptor] = peer
                poll.register(descriptor, (select.POLLIN if awaited else 0) | (select.POLLOUT if peer in left else 0))
            ready = poll.poll(1e3 * TURN_S)
            if not ready:
                late = self._checked(late, step, left[0])
            for descriptor, events in ready:
                peer = of[descriptor]
                try:
                    if events & ~select.POLLIN:
                        self._peers[peer].send()
                    if events & select.POLLIN and peer in arrivals:
                        arrivals[peer].read()
                except (OSError, ValueError) as error:
                    raise self._failure(step, peer, _reason(error)) from None

    def _checked(self, late: float | None, step: int, peer: int) -> float:
        """When the time of a message is over, as it was after its first turn; now is later than a turn after that.

        Raises: ExecutionError: it is over.
        """
        limit_s, now = self._timeout().total_seconds(), time.monotonic()
        late = now + limit_s - TURN_S if late is None else late
        if now >= late:
            raise self._failure(step, peer, f"Timed out waiting {1e3 * limit_s:.0f}ms")
        return late

    def close(self) -> None:
        """Close all connections."""
        for peer in self._peers.values():
            peer.sending.close()
            peer.receiving.close()

    def _failure(self, step: int, peer: int, reason: str) -> ExecutionError:
        where = "before step 0" if step < 0 else f"step {step}"
        failure = ExecutionError(f"rank {self._rank} of {self._size}: {self.label}, {where}: rank {peer}: {reason}")
        failure.failed_rank = peer
        return failure


def own_address() -> tuple[str, int]:
    """The address of this host that PyTorch's Gloo takes too, and its family: that of the interface which GLOO_SOCKET_IFNAME
    names, or that of the host's name, or 127.0.0.1.

    Source: createDefaultDevice in torch/csrc/distributed/c10d/ProcessGroupGloo.cpp.
    """
    name = os.environ.get("GLOO_SOCKET_IFNAME", "").split(",")[0]
    if name:
        with socket.socket() as some:
            try:
                reply = fcntl.ioctl(some, SIOCGIFADDR, struct.pack("256s", name[:15].encode()))
                return socket.inet_ntop(socket.AF_INET, reply[20:24]), socket.AF_INET
            except OSError:  # it has none: the first of IPv6 that is no link's own
                with open("/proc/net/if_inet6") as lines:
                    for digits, _, _, scope, _, interface in map(str.split, lines):
                        if interface == name and scope != "20":
                            return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits)), socket.AF_INET6
                raise ExecutionError(f"GLOO_SOCKET_IFNAME={name} has no address; try another interface") from None
    try:
        family, _, _, _, address = socket.getaddrinfo(socket.gethostname(), None, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as some:
            some.bind((address[0], 0))
    except OSError:  # the name has no address, or none of this host
        return "127.0.0.1", socket.AF_INET
    return str(address[0]), family


def bytes_of(buffer: torch.Tensor | memoryview) -> memoryview:
    """The memory of a contiguous tensor.

    Args: buffer: the tensor, or its memory, which is kept where it is sent often.
    """
    if type(buffer) is memoryview:
        return buffer
    return memoryview(buffer.view(torch.uint8).numpy()).cast("B") if buffer.numel() else memoryview(b"")


def _reason(error: Exception) -> str:
    return "calls something else" if isinstance(error, ValueError) else "Connection closed by peer"
