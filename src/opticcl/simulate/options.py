"""What each engine can be told; light, so that the command line can ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.registry import canonical, convert_arguments, nearest
from opticcl.simulate.limits import Limit
from opticcl.units import Bytes, Seconds

__all__ = ["ENGINES", "PacketOptions", "packet_options", "split_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketOptions:
    """How cells travel.

    Args:
        cell_bytes: what is sent at once; the last cell of a transfer has what is left [bytes].
        queue: output: a cell waits in front of the link that it takes next, and a switch is as fast as it must be;
            input: it waits behind the link that it came over, and those behind it wait with it.
        forwarding: store_and_forward sends a cell on when it is there; cut_through as soon as its head is there (and
            no earlier than lets it go on without a gap).
        buffer_bytes: room for cells in each queue [bytes]; None: as much as they need.
        transport: paced: a sender sends as fast as its link, and with finite buffers a link waits until there is room
            behind it, so nothing is lost; windowed: each transfer has `window` cells on the way, and what finds a
            full queue is lost and sent again.
        window: cells of a transfer on the way or not yet acknowledged (windowed) [count].
        retransmit_s: from the loss of a cell until its sender knows (windowed) [s]; None: two round trips of its path.
        order: of the transfers that a node sends at once over one link: interleaved sends a cell of each in turn,
            sequential one transfer after the other. Both go by receivers, and sender r begins with the r-th of its
            receivers, so that senders do not all begin with the same one. shuffled is interleaved in a random order.
        seed: of shuffled.
    """

    cell_bytes: Bytes = 4096.0
    queue: Literal["output", "input"] = "output"
    forwarding: Literal["store_and_forward", "cut_through"] = "store_and_forward"
    buffer_bytes: Bytes | None = None
    transport: Literal["paced", "windowed"] = "paced"
    window: int = 64
    retransmit_s: Seconds | None = None
    order: Literal["interleaved", "sequential", "shuffled"] = "interleaved"
    seed: int = 0


_PACKET = tuple(f.name for f in fields(PacketOptions))
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "closed_form": (),
    "flow": ("max_events", "progress"),
    "packet": (*_PACKET, "max_events", "progress"),
}
ENGINES = tuple(_OPTIONS)


def packet_options(**given: Any) -> PacketOptions:
    """Options of the packet engine; texts are converted.

    >>> packet_options(cell_bytes="9 kB", queue="input").cell_bytes
    9000.0

    Raises: ParameterError: no such option or value.
    """
    options = PacketOptions(**convert_arguments(PacketOptions, given, "packet"))
    cell, buffer = options.cell_bytes, options.buffer_bytes
    if cell < 1 or cell != round(cell):
        raise ParameterError(f"packet: cell_bytes={cell:g} is not a whole number of 1 or more; try 4096")
    if buffer is not None and (buffer < cell or buffer != round(buffer)):
        raise ParameterError(
            f"packet: buffer_bytes={buffer:g} must be a whole number with room for one cell of {cell:g} bytes; "
            f"try {8 * round(cell)}"
        )
    for name, least in (("window", 1), ("seed", 0)):
        if getattr(options, name) < least:
            raise ParameterError(f"packet: {name}={getattr(options, name)}; at least {least}")
    if options.retransmit_s is not None and options.retransmit_s <= 0:
        raise ParameterError(f"packet: retransmit_s={options.retransmit_s:g} is not positive; try 100us")
    idle = [name for name in ("window", "retransmit_s") if name in given and options.transport == "paced"]
    if idle:
        raise ParameterError(f"packet: {idle[0]} is of transport=windowed; a paced sender has none")
    if "seed" in given and options.order != "shuffled":
        raise ParameterError(f"packet: seed is of order=shuffled; nothing else is random, and order={options.order}")
    return options


def split_options(engine: str, given: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """(canonical name of the engine, its options, what remains: assumptions).

    Options are looked at here, so that nothing is computed for those that no engine will take.

    >>> split_options("packet", {"cell_bytes": 64, "compute": "none"})
    ('packet', {'cell_bytes': 64}, {'compute': 'none'})

    Raises: UnknownNameError: no such engine. ParameterError: an option of another engine, or a value that it refuses.
    """
    name = canonical(engine)
    if name not in _OPTIONS:
        raise UnknownNameError(f"unknown engine {engine!r}; {nearest(name, ENGINES)}")
    mine: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for key, value in given.items():
        option = canonical(key)
        owners = [other for other in ENGINES if option in _OPTIONS[other]]
        if owners and name not in owners:
            which = " and ".join(owners)
            raise ParameterError(f"simulate: {option} is an option of engine={which}, not of {name}")
        (mine if owners else rest)[option if owners else key] = value
    if "max_events" in mine:
        Limit(name, mine["max_events"])
    packet_options(**{option: value for option, value in mine.items() if option in _PACKET})
    return name, mine, rest
