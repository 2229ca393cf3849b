"""A control unit and its payloads as a process of its own: `python -m opticcl.operations.oddl_control.node`.

It reads its task as one line of JSON, writes its ports, reads those of its peers, and at the end writes the result or an
error, one line of JSON each. Messages are sent over UDP, payloads over TCP and only once the protocol allows them. Outgoing
messages are lost, duplicated, delayed and preceded by garbage, as the task requests.
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

from opticcl.errors import ControlError
from opticcl.operations.oddl_control.protocol import (
    ControlPhase,
    Event,
    GiveUp,
    MessageArrived,
    PayloadReceived,
    PayloadSent,
    Reaction,
    Send,
    Timer,
    Transmit,
    Tune,
    Tuned,
    react,
    start,
)
from opticcl.operations.oddl_control.script import ControlExchange, Script
from opticcl.operations.oddl_control.wire import DATAGRAM_BYTES, datagram, read_datagram

HOST = "127.0.0.1"
DIED = 9  # exit code of a node whose failure is injected

_PAYLOAD = struct.Struct("!4sIHIQ")  # magic, job, sender, exchange, bytes
_MAGIC = b"ODPL"


class ControlNode(asyncio.DatagramProtocol):
    """One unit, its rank's data and its sockets."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.job: int = task["job"]
        exchanges = tuple(ControlExchange(tuple(sends), tuple(receives)) for sends, receives in task["exchanges"])
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
        self.counts = {"messages": 0, "lost": 0, "duplicated": 0, "garbage": 0, "refused": 0, "repeated": 0}
        self.ports: dict[int, tuple[int, int]] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.is_root = True  # whether an error here is the cause, not a consequence of an error elsewhere
        self.waiting: set[asyncio.Task[None]] = set()

    # --- the unit -----------------------------------------------------------------------------------------------------

    async def run(self) -> np.ndarray:
        """Run the task and return the result.

        Raises: ControlError: a peer did not answer, or an unexpected payload arrived.
        """
        loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = loop.create_future()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, local_addr=(HOST, 0))
        self.transport: asyncio.DatagramTransport = transport
        server = await asyncio.start_server(self.receive, HOST, 0)
        try:
            _write_line({"udp": transport.get_extra_info("sockname")[1], "tcp": server.sockets[0].getsockname()[1]})
            line = await loop.run_in_executor(None, sys.stdin.readline)
            if not line:
                raise ControlError(f"node {self.script.address} was not sent the ports of its peers")
            self.ports = {int(node): tuple(ports) for node, ports in json.loads(line).items()}
            self.apply(start(self.script))
            await self.done
        finally:
            if self.timer:
                self.timer.cancel()
            for task in self.waiting:
                task.cancel()
            transport.close()
            server.close()
        return self.data

    def handle(self, event: Event) -> None:
        """Pass an event to the unit."""
        before = self.state
        reaction = react(self.script, before, event)
        state = reaction[0]
        if before.phase in (ControlPhase.READY, ControlPhase.SENDING) and (
            state.phase not in (ControlPhase.READY, ControlPhase.SENDING) or state.exchange != before.exchange
        ):
            self.finish_exchange(before.exchange)
        if isinstance(event, Timer):
            self.counts["repeated"] += len(reaction[1])
        self.apply(reaction)

    def apply(self, reaction: Reaction) -> None:
        """Set the new state, send the messages and execute the actions."""
        self.state, sends, actions = reaction
        for send in sends:
            self.send(send)
        if self.timer:
            self.timer.cancel()
        self.timer = asyncio.get_running_loop().call_later(self.repeat_s, self.handle, Timer())
        for action in actions:
            if isinstance(action, Tune):
                asyncio.get_running_loop().call_later(self.tune_s, self.handle, Tuned(action.exchange))
            elif isinstance(action, Transmit):
                task = asyncio.get_running_loop().create_task(self.transmit(action.exchange))
                self.waiting.add(task)
                task.add_done_callback(self.waiting.discard)
            elif isinstance(action, GiveUp):
                nodes = ", ".join(map(str, action.waiting_for))
                self.fail(
                    f"node {self.script.address} timed out waiting for node(s) {nodes} in exchange {self.state.exchange}"
                )
            elif not self.done.done():
                self.done.set_result(None)

    def fail(self, problem: str) -> None:
        """Finish with an error."""
        if not self.done.done():
            self.done.set_exception(ControlError(problem))

    # --- messages -----------------------------------------------------------------------------------------------------

    def send(self, send: Send) -> None:
        """Send a message over a network with injected faults."""
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
        self.counts["duplicated"] += copies - 1
        for _ in range(copies):
            delay_s = faults["delay_s"] * random()  # reorders messages
            loop.call_later(delay_s, self.transport.sendto, datagram(self.job, send.message), to)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        """A datagram has arrived."""
        if not self.ports:
            return  # a peer has started earlier; it will repeat the message
        message = read_datagram(self.job, data)
        if message is None or message.sender not in self.script.place:
            self.counts["refused"] += 1
        else:
            self.handle(MessageArrived(message))

    def error_received(self, exc: Exception) -> None:
        """A peer's port is closed: it has finished, or it is dead and the timeout will detect that."""

    # --- payloads -----------------------------------------------------------------------------------------------------

    async def transmit(self, exchange: int) -> None:
        """Send the payload of an exchange to its destinations."""
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
            self.fail(
                f"node {self.script.address} cannot send its payload of exchange {exchange}: node {to} is unreachable"
            )
            return
        self.handle(PayloadSent(exchange))

    async def receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Receive a payload; other connections are dropped."""
        try:
            head = await reader.readexactly(_PAYLOAD.size)
            magic, job, sender, exchange, size = _PAYLOAD.unpack(head)
            if magic != _MAGIC or job != self.job or sender not in self.script.place:
                self.counts["refused"] += 1
                return
            if exchange != self.state.exchange or self.state.phase not in (ControlPhase.READY, ControlPhase.SENDING):
                self.fail(
                    f"node {sender} sent its payload of exchange {exchange} before node {self.script.address} was ready"
                )
                return
            due = [(lo, n, op) for src, lo, n, op in self.arriving[exchange] if src == sender]
            row_bytes = self.data[:1].nbytes
            if size != sum(n for _, n, _ in due) * row_bytes:
                self.fail(f"node {sender} sent {size} bytes in exchange {exchange}, which the plan does not have")
                return
            for lo, n, op in due:
                body = await reader.readexactly(n * row_bytes)
                self.inbox.append((op, lo, n, np.frombuffer(body, self.data.dtype).reshape(n, -1)))
            self.handle(PayloadReceived(sender, exchange))
        except (asyncio.IncompleteReadError, ConnectionError):  # the sender died; the timeout will detect that
            self.counts["refused"] += 1
        finally:
            writer.close()

    def finish_exchange(self, exchange: int) -> None:
        """Finish an exchange; after the last one of a step the received data are reduced or stored."""
        if exchange + 1 < len(self.step) and self.step[exchange + 1] == self.step[exchange]:
            return
        for op, lo, n, rows in sorted(self.inbox, key=lambda entry: entry[0]):
            if op:
                self.data[lo : lo + n] += rows
            else:
                self.data[lo : lo + n] = rows
        self.inbox.clear()


def _write_line(value: dict[str, Any]) -> None:
    print(json.dumps(value), flush=True)


def main() -> int:
    """Read the task, run it, write the result."""
    node = ControlNode(json.loads(sys.stdin.readline()))
    try:
        data = asyncio.run(node.run())
    except ControlError as error:
        _write_line({"error": str(error), "is_root": node.is_root})
        return error.exit_code
    _write_line({"data": base64.b64encode(data.tobytes()).decode(), **node.counts})
    return 0


if __name__ == "__main__":
    sys.exit(main())
