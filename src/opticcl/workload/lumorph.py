"""Reader of LUMORPH's logs: every all-reduce and layer-to-layer transfer of an iteration, a line each::

    AR;bytes;gpu,gpu,...                            all-reduce in a group
    L2L;bytes;layer;direction;source;destination    direction 0 forward, 1 backward

After `|` a line may have how long it took [ms]. Groups of one GPU and transfers from a GPU to itself, which the logs are
full of, ask nothing of the network.

Source: lumorphnetwork/code, logs/*/comms_*.log, as `comms_4` to `comms_256` are written.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path

from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import DamageError, check_size, lines, printable, reading, refusal, title
from opticcl.workload._notes import LeftOut, notes_on

__all__ = ["read_workload"]

FORM = "write AR;bytes;gpu,gpu,... or L2L;bytes;layer;direction;source;destination"
_DIRECTIONS = {"0": "forward", "1": "backward"}


def read_workload(path: Path) -> Workload:
    """The all-reduces and transfers of a log, in its order.

    Raises: WorkloadError: a line of another form, an absurd size, or nothing in it leaves a GPU.
    """
    calls: list[CollectiveCall] = []
    left_out = LeftOut()
    highest = -1
    with reading(path, "LUMORPH log", "line") as file:
        for number, line in lines(file):
            call = _call(number, line)
            highest = max(highest, *call.ranks)
            if call.is_transfer and call.ranks[0] == call.ranks[1]:
                left_out.add("transfers from a GPU to itself", call.size_bytes)
            elif len(call.ranks) == 1:
                left_out.add("all_reduce in a group of one GPU", call.size_bytes)
            else:
                calls.append(call)
    notes = [*notes_on(calls, highest + 1), *left_out.notes()]
    if not calls:
        raise refusal(path, f"nothing in it goes from one GPU to another; {'; '.join(notes) or 'there is no line'}")
    return Workload(title(path), f"LUMORPH log {printable(path.name)}", tuple(calls), tuple(notes), highest + 1)


def _call(number: int, line: str) -> CollectiveCall:
    """The call that a line asks for.

    Raises: DamageError: the line is of another form.
    """
    record, _, took = line.partition("|")
    kind, *rest = (part.strip() for part in record.split(";"))
    if kind == "AR" and len(rest) == 2:
        ranks = _group(rest[1])
        if not ranks:
            raise DamageError(number, f"{_short(rest[1])!r} is no list of GPUs, each named once; {FORM}")
        return CollectiveCall(
            f"line {number}", "all_reduce", _size(number, rest[0]), measured_s=_took(number, took), ranks=ranks
        )
    if kind == "L2L" and len(rest) == 5 and rest[2] in _DIRECTIONS:
        ends = _group(f"{rest[3]},{rest[4]}", pair=True)
        if not ends:
            raise DamageError(number, f"{_short(rest[3])!r} to {_short(rest[4])!r} are no two GPUs; {FORM}")
        name = printable(f"layer {rest[1]} {_DIRECTIONS[rest[2]]}")
        return CollectiveCall(name, "send_recv", _size(number, rest[0]), measured_s=_took(number, took), ranks=ends)
    raise DamageError(number, f"{_short(line)!r} is no record; {FORM}")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."


@lru_cache(maxsize=256)
def _group(text: str, pair: bool = False) -> tuple[int, ...]:
    """The GPUs of "0,1,2"; empty if it is no such list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and len(part) <= 9 for part in parts):
        return ()
    ranks = tuple(map(int, parts))
    return ranks if pair or len(set(ranks)) == len(ranks) else ()


def _size(number: int, text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 40):
        raise DamageError(number, f"{_short(text)!r} is no whole number of bytes; {FORM}")
    return check_size(int(text), number, "the message")


def _took(number: int, text: str) -> float:
    if not text.strip():
        return 0.0
    try:
        took_s = float(text) * 1e-3
    except ValueError:
        took_s = -1.0
    if not 0 <= took_s < math.inf:
        raise DamageError(number, f"{_short(text)!r} after | is no time in milliseconds")
    return took_s
