"""Options of the engines. An engine registers its class; conversion from text and the command line follow from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opticcl.errors import ParameterError
from opticcl.units import Bytes, Seconds

__all__ = ["ClosedFormOptions", "DeviceOptions", "FlowOptions", "Mode", "PacketOptions"]

Mode = Literal["barrier", "asynchronous"]

DEFAULT_WINDOW = 64  # cells
MOST_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedFormOptions:
    """The closed form has no options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceOptions:
    """Options of the device engine.

    Args:
        max_events: refuse a simulation of more events than this: starts, ends and changes of rate of flows (flow), or cells
            sent over a link (packet) [count].
    Raises: ParameterError: a limit below 1.
    """

    max_events: int = 20_000_000

    def __post_init__(self) -> None:
        _require_events("device", self.max_events)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOptions:
    """Options of the flow engine.

    Args:
        mode: when a transfer starts. barrier: once the step before has ended everywhere; asynchronous: as soon as its data
            and ports are ready.
        max_events: refuse a simulation of more events than this: starts, ends and changes of rate of flows (flow), or cells
            sent over a link (packet) [count].
        tolerance: on packet fabrics, an end that comes this much later than another event happens together with it, relative
            to the time and to the bytes of the transfer; 0: exact [1].
    Raises: ParameterError: a limit below 1, or a tolerance beyond 0 to 0.1.
    """

    mode: Mode = "barrier"
    max_events: int = 20_000_000
    tolerance: float = 0.0

    def __post_init__(self) -> None:
        _require_events("flow", self.max_events)
        if not 0 <= self.tolerance <= MOST_TOLERANCE:
            raise ParameterError(
                f"flow: tolerance={self.tolerance:g} is not between 0 and {MOST_TOLERANCE:g}; try 0.001"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketOptions:
    """Options of the packet engine: how cells travel.

    Args:
        mode: when a transfer starts. barrier: once the step before has ended everywhere; asynchronous: as soon as its data
            and ports are ready.
        cell_bytes: size of a cell; the last cell of a transfer carries the remainder [bytes].
        queue: where cells wait. output: for the next link, in a switch of unlimited speed; input: behind the link that
            they arrived on, where the first cell blocks those behind it.
        forwarding: when a switch sends a cell on. store_and_forward: once it has arrived; cut_through: once its head has
            arrived, and no earlier than lets it continue without a gap.
        buffer_bytes: capacity of each queue; unlimited if left out [bytes].
        transport: what senders do. paced: a sender sends at the rate of its link, and with finite buffers a link waits for
            space behind it, so nothing is lost; windowed: `window` cells of each transfer are in flight, and a cell that
            finds a full queue is dropped and sent again.
        window: cells of a transfer in flight or not yet acknowledged, with transport=windowed; 64 if left out [count].
        retransmit_s: from the loss of a cell until its sender learns of it, with transport=windowed; two round trips of the
            path if left out [s].
        order: order of the transfers that a node sends in one step over one link. interleaved alternates cells of each,
            sequential one transfer after the other; both in order of the receivers, where sender r begins with the r-th of
            its receivers, so that senders do not all begin with the same one. shuffled interleaves in a random order.
        seed: seed of the random order, with order=shuffled; 0 if left out.
        max_events: refuse a simulation of more events than this: starts, ends and changes of rate of flows (flow), or cells
            sent over a link (packet) [count].
    Raises: ParameterError: a value out of range, or an option that the chosen transport or order does not use.
    """

    mode: Mode = "barrier"
    cell_bytes: Bytes = 4096.0
    queue: Literal["output", "input"] = "output"
    forwarding: Literal["store_and_forward", "cut_through"] = "store_and_forward"
    buffer_bytes: Bytes | None = None
    transport: Literal["paced", "windowed"] = "paced"
    window: int | None = None
    retransmit_s: Seconds | None = None
    order: Literal["interleaved", "sequential", "shuffled"] = "interleaved"
    seed: int | None = None
    max_events: int = 100_000_000

    def __post_init__(self) -> None:
        cell, buffer = self.cell_bytes, self.buffer_bytes
        if cell < 1 or cell != round(cell):
            raise ParameterError(f"packet: cell_bytes={cell:g} is not a whole number of 1 or more; try 4096")
        if buffer is not None and (buffer < cell or buffer != round(buffer)):
            raise ParameterError(
                f"packet: buffer_bytes={buffer:g} must be a whole number, at least one cell of {cell:g} bytes; "
                f"try {8 * round(cell)}"
            )
        for name, value, least in (("window", self.window, 1), ("seed", self.seed, 0)):
            if value is not None and value < least:
                raise ParameterError(f"packet: {name}={value}; it must be at least {least}")
        if self.retransmit_s is not None and self.retransmit_s <= 0:
            raise ParameterError(f"packet: retransmit_s={self.retransmit_s:g} is not positive; try 100us")
        for name in ("window", "retransmit_s"):
            if getattr(self, name) is not None and self.transport != "windowed":
                raise ParameterError(f"packet: {name} needs transport=windowed; a paced sender has no {name}")
        if self.seed is not None and self.order != "shuffled":
            raise ParameterError(f"packet: seed needs order=shuffled; order={self.order} is not random")
        _require_events("packet", self.max_events)

    @property
    def window_cells(self) -> int:
        """Cells of a transfer in flight or not yet acknowledged [count]."""
        return DEFAULT_WINDOW if self.window is None else self.window

    @property
    def random_seed(self) -> int:
        """Seed of the random order."""
        return 0 if self.seed is None else self.seed


def _require_events(engine: str, max_events: int) -> None:
    if max_events < 1:
        raise ParameterError(f"{engine}: max_events={max_events}; it must be at least 1, try 1000000")
