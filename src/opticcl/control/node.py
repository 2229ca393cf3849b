"""A control unit and its payloads as a process of its own: `python -m opticcl.control.node`.

It reads what it has to do as one line of JSON, tells its ports, reads those of its peers, and in the end tells the result
or what went wrong, a line of JSON each. Messages go over UDP, payloads over TCP and only once the protocol lets them. On
the way out messages are lost, doubled, held back and mixed with garbage, as told.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
import sys
from random import Random
from typing import Any

import numpy as np

from opticcl.control.protocol import (
    Event,
    GiveUp,
    Heard,
    Phase,
    Reaction,
    Received,
    Send,
    Sent,
    Timer,
    Transmit,
    Tune,
    Tuned,
    react,
    start,
)
from opticcl.control.script import Exchange, Script
from opticcl.control.wire import DATAGRAM_BYTES, datagram, read_datagram
from opticcl.errors import ControlError

HOST = "127.0.0.1"
DIED = 9  # exit code of a node that is told to die

_PAYLOAD = struct.Struct("!4sIHIQ")  # magic, job, sender, exchange, bytes
_MAGIC = b"ODPL"


class Node(asyncio.DatagramProtocol):
    """One unit, its part of the data and its sockets."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.job: int = task["job"]
        exchanges = tuple(Exchange(tuple(sends), tuple(receives)) for sends, receives in task["exchanges"])
        self.script = Script(task["address"], exchanges, patience=task["patience"])
        self.pieces: list[list[tuple[int, int, int]]] = task["pieces"]  # (to, first chunk, chunks) of each exchange
        self.arriving: list[list[tuple[int, int, int, int]]] = task[
            "arriving"
        ]  # (from, first chunk, chunks, operation)
        self.step: list[int] = task["step"]
        self.faults: dict[str, float] = task["faults"]
        self.repeat_s: float = task["repeat_s"]
        self.tune_s: float = task["tune_s"]
        self.dies_in: int | None = task["dies_in"]
        self.data = np.frombuffer(base64.b64decode(task["data"]), task["dtype"]).reshape(task["shape"]).copy()
        self.random = Random(f"{task['seed']}/{task['address']}")
        self.inbox: list[tuple[int, int, int, np.ndarray]] = []
        self.counts = {"messages": 0, "lost": 0, "doubled": 0, "garbage": 0, "refused": 0, "repeated": 0}
        self.ports: dict[int, tuple[int, int]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.is_root = True  # whether what went wrong here is no consequence of what went wrong elsewhere
        self.waiting: set[asyncio.Task[None]] = set()

    # --- the unit -----------------------------------------------------------------------------------------------------

    async def run(self) -> np.ndarray:
        """From the ports of the peers to the result.

        Raises: ControlError: a peer never answered, or a payload came that was not due.
        """
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(HOST, 0))
        self.transport: asyncio.DatagramTransport = transport
        server = await asyncio.start_server(self.receive, HOST, 0)
        try:
            _tell({"udp": transport.get_extra_info("sockname")[1], "tcp": server.sockets[0].getsockname()[1]})
            line = await loop.run_in_executor(None, sys.stdin.readline)
            if not line:
                raise ControlError(f"node {self.script.address} was left alone before it knew its peers")
            self.ports = {int(node): tuple(ports) for node, ports in json.loads(line).items()}
            self.follow(start(self.script))
            await self.done
        finally:
            if self.timer:
                self.timer.cancel()
            for task in self.waiting:
                task.cancel()
            transport.close()
            server.close()
        return self.data

    def happens(self, event: Event) -> None:
        """Let the unit react."""
        before = self.state
        reaction = react(self.script, before, event)
        state = reaction[0]
        if before.phase in (Phase.READY, Phase.SENDING) and (
            state.phase not in (Phase.READY, Phase.SENDING) or state.exchange != before.exchange
        ):
            self.over(before.exchange)
        if isinstance(event, Timer):
            self.counts["repeated"] += len(reaction[1])
        self.follow(reaction)

    def follow(self, reaction: Reaction) -> None:
        """Do what the unit wants."""
        self.state, sends, actions = reaction
        for send in sends:
            self.post(send)
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(self.repeat_s, self.happens, Timer())
        for action in actions:
            if isinstance(action, Tune):
                asyncio.get_running_loop().call_later(self.tune_s, self.happens, Tuned(action.exchange))
            elif isinstance(action, Transmit):
                task = asyncio.get_running_loop().create_task(self.transmit(action.exchange))
                self.waiting.add(task)
                task.add_done_callback(self.waiting.discard)
            elif isinstance(action, GiveUp):
                nodes = ", ".join(map(str, action.waiting_for))
                self.fail(
                    f"node {self.script.address} waits in vain for node(s) {nodes} in exchange {self.state.exchange}"
                )
            elif not self.done.done():
                self.done.set_result(None)

    def fail(self, problem: str) -> None:
        """End with an error."""
        if not self.done.done():
            self.done.set_exception(ControlError(problem))

    # --- messages -----------------------------------------------------------------------------------------------------

    def post(self, send: Send) -> None:
        """Give a message to a network that is not to be trusted."""
        loop, random, faults = asyncio.get_running_loop(), self.random.random, self.faults
        to = (HOST, self.ports[send.to][0])
        self.counts["messages"] += 1
        if random() < faults["garbage"]:
            self.counts["garbage"] += 1
            self.transport.sendto(self.random.randbytes(int(random() * 2 * DATAGRAM_BYTES)), to)
        if random() < faults["loss"]:
            self.counts["lost"] += 1
            return
        copies = 2 if random() < faults["duplicate"] else 1
        self.counts["doubled"] += copies - 1
        for _ in range(copies):
            late_s = faults["delay_s"] * random()  # so they overtake each other
            loop.call_later(late_s, self.transport.sendto, datagram(self.job, send.message), to)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """Something came in over UDP."""
        if not self.ports:
            return  # a peer was quicker to start; it will repeat what it says
        message = read_datagram(self.job, data)
        if message is None or message.sender not in self.script.place:
            self.counts["refused"] += 1
        else:
            self.happens(Heard(message))

    def error_received(self, exc: Exception) -> None:
        """A peer's port is closed: it has finished, or it is dead and patience will tell."""

    # --- payloads -----------------------------------------------------------------------------------------------------

    async def transmit(self, exchange: int) -> None:
        """Send the own payload of an exchange to all that are due one."""
        if exchange == self.dies_in:
            os._exit(DIED)
        to = -1
        try:
            for to in self.script.exchanges[exchange].sends:
                cut = [self.data[lo : lo + n] for dst, lo, n in self.pieces[exchange] if dst == to]
                body = np.concatenate(cut).tobytes()
                _, writer = await asyncio.open_connection(HOST, self.ports[to][1])
                writer.write(_PAYLOAD.pack(_MAGIC, self.job, self.script.address, exchange, len(body)) + body)
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except OSError:
            self.is_root = False
            self.fail(f"node {self.script.address} cannot send its payload of exchange {exchange}: node {to} is gone")
            return
        self.happens(Sent(exchange))

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A payload comes in; anything else that connects is dropped."""
        try:
            head = await reader.readexactly(_PAYLOAD.size)
            magic, job, sender, exchange, size = _PAYLOAD.unpack(head)
            if magic != _MAGIC or job != self.job or sender not in self.script.place:
                self.counts["refused"] += 1
                return
            if exchange != self.state.exchange or self.state.phase not in (Phase.READY, Phase.SENDING):
                self.fail(
                    f"node {sender} sent its payload of exchange {exchange} before node {self.script.address} was ready"
                )
                return
            due = [(lo, n, op) for src, lo, n, op in self.arriving[exchange] if src == sender]
            row_bytes = self.data[:1].nbytes
            if size != sum(n for _, n, _ in due) * row_bytes:
                self.fail(f"node {sender} sent {size} bytes in exchange {exchange}, not those of the plan")
                return
            for lo, n, op in due:
                body = await reader.readexactly(n * row_bytes)
                self.inbox.append((op, lo, n, np.frombuffer(body, self.data.dtype).reshape(n, -1)))
            self.happens(Received(sender, exchange))
        except (asyncio.IncompleteReadError, ConnectionError):  # it died in between; patience will tell
            self.counts["refused"] += 1
        finally:
            writer.close()

    def over(self, exchange: int) -> None:
        """An exchange has ended; with the last one of its step the data are added up or stored."""
        if exchange + 1 < len(self.step) and self.step[exchange + 1] == self.step[exchange]:
            return
        for op, lo, n, rows in sorted(self.inbox, key=lambda entry: entry[0]):
            if op:
                self.data[lo : lo + n] += rows
            else:
                self.data[lo : lo + n] = rows
        self.inbox.clear()


def _tell(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


def main() -> int:
    """Read the task, run it, tell the result."""
    node = Node(json.loads(sys.stdin.readline()))
    try:
        data = asyncio.run(node.run())
    except ControlError as error:
        _tell({"error": str(error), "is_root": node.is_root})
        return error.exit_code
    _tell({"data": base64.b64encode(data.tobytes()).decode(), **node.counts})
    return 0


if __name__ == "__main__":
    sys.exit(main())
