"""Phases in the header of a plan file: the transfers of representatives, and the digits that translations move.

A ring of 65,536 nodes has 131,070 steps; its header has two rows. The rows of the file hold circuits, with the transfers that
they carry, of the first step of every range of steps with the same circuits; the phases say what the others are. A phase
without rows has one step, whose transfers are in the rows of the file alone.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from dataclasses import fields
from itertools import pairwise

import msgspec
import numpy as np

from opticcl.errors import OpticclError
from opticcl.ir import CircuitPlan, Collective, IntArray, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.phases import MessagePart, Phase, PhaseRows, Space, Steps

__all__ = ["PhaseHeader", "StepsHeader", "file_steps", "header_of_steps", "read_steps", "states_paths"]

MOST_DIGITS = 64  # of a rank; more would all have one value
MOST_PHASE_ROWS = 1 << 24  # of all phases, of a file
MOST_HOPS = 1 << 26  # of the paths of a phase

_WIDE = ("src", "dst", "lo", "count", "step", "shift")
_PARTS_OF_FIELD = 3


class RowsHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Columns of `opticcl.ir.phases.PhaseRows`: a number, where all values are equal, or packed values.

    Args:
        num_rows: rows [count].
        src, dst, lo, count, step, shift: of every digit, row by row.
        part, unit_lo, unit_count, unit_step, op, parts, unit_shift, parts_step: of every row.
    """

    num_rows: int
    src: int | str = 0
    dst: int | str = 0
    lo: int | str = 0
    count: int | str = 1
    step: int | str = 1
    shift: int | str = 0
    part: int | str = 0
    unit_lo: int | str = 0
    unit_count: int | str = 1
    unit_step: int | str = 1
    op: int | str = 0
    parts: int | str = 1
    unit_shift: int | str = 0
    parts_step: int | str = 0


class PhaseHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """A phase.

    Args:
        rows: of representatives; None: one step, whose transfers are in the rows of the file.
        moves: digits that translations move.
        count: steps [count].
        bundles: first row of each bundle, packed; or 0: all rows are one.
        same_circuits: whether the steps of a range that differ in the numbers of chunks alone have one step of the file.
        hops, lengths: links of the paths that rows state, end to end, and how many each has, packed; None: no row states one.
        states_paths: of a phase without rows, whether its transfers state the paths of their circuits.
    """

    rows: RowsHeader | None = None
    moves: list[int] = []
    count: int = 1
    bundles: int | str = 0
    same_circuits: bool = False
    hops: str | None = None
    lengths: str | None = None
    states_paths: bool = False


class StepsHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True, omit_defaults=True):
    """Digits of ranks, parts of the message, phases.

    Args:
        radices: of the digits, the most significant first.
        parts: of the message: (digit, stride, radix) of each place value of a chunk's number; digit -1 is the unit.
        phases: in order.
        order: rank at each place, packed; None: the same number.
    """

    radices: list[int]
    parts: list[list[list[int]]]
    phases: list[PhaseHeader]
    order: str | None = None


# --- to the header ----------------------------------------------------------------------------------------------------


def file_steps(plan: CircuitPlan) -> tuple[range, ...]:
    """Steps that each step of a file stands for: ranges with the same circuits by definition, each other step alone."""
    steps, ranges = plan.schedule.steps, list[range]()
    for number in range(len(steps.phases)):
        first, end = steps.starts[number : number + 2]
        if _same_circuits(plan, number):
            ranges += [range(a, b) for a, b in pairwise(steps.changes_of(number))]
        else:
            ranges += [range(i, i + 1) for i in range(first, end)]
    return tuple(ranges)


def _same_circuits(plan: CircuitPlan, number: int) -> bool:
    """Whether the ranges of a phase that has rows have the same circuits by definition."""
    steps = plan.schedule.steps
    if not isinstance(steps.phases[number].rows, PhaseRows) or not isinstance(plan.rounds, ClassRounds):
        return False
    return all(range(a, b) in plan.rounds.classes for a, b in pairwise(steps.changes_of(number)))


def header_of_steps(plan: CircuitPlan) -> StepsHeader | None:
    """The phases of a plan; None where every step is listed in the rows of the file alone, and states no path."""
    steps = plan.schedule.steps
    kept = [
        isinstance(one.rows, PhaseRows)
        and len(one.rows) > 0
        and (one.count > 1 or not one.listed or one.paths is not None)
        for one in steps.phases
    ]
    if not any(kept) and not states_paths(plan):
        return None
    phases: list[PhaseHeader] = []
    for number, (phase, whole) in enumerate(zip(steps.phases, kept, strict=True)):
        if not whole:
            phases += [
                PhaseHeader(states_paths=steps.states_paths(i)) for i in range(*steps.starts[number : number + 2])
            ]
            continue
        assert isinstance(phase.rows, PhaseRows)
        phases.append(
            PhaseHeader(
                _rows_header(phase.rows),
                [digit for digit, moved in enumerate(phase.moves) if moved],
                phase.count,
                _pack(np.array(phase.bundles)) if phase.bundles != (0,) else 0,
                _same_circuits(plan, number),
                *(() if phase.paths is None else (_pack(phase.paths[0]), _pack(np.diff(phase.paths[1])))),
            )
        )
    order = None if steps.space.order is None else _pack(steps.space.order)
    parts = [[list(field) for field in part.fields] for part in steps.parts]
    return StepsHeader(list(steps.space.radices), parts, phases, None if order is None else str(order))


def states_paths(plan: CircuitPlan) -> bool:
    """Whether some transfer of a plan states a path."""
    return any(map(plan.schedule.steps.states_paths, range(plan.schedule.num_steps)))


def _rows_header(rows: PhaseRows) -> RowsHeader:
    columns = {field.name: np.asarray(getattr(rows, field.name)).ravel() for field in fields(rows)}
    return RowsHeader(
        len(rows),
        **{name: int(values[0]) if (values == values[0]).all() else _pack(values) for name, values in columns.items()},
    )


def _pack(values: IntArray) -> str:
    differences = np.diff(np.asarray(values, np.int64), prepend=0).astype("<i4")
    return base64.b64encode(zlib.compress(differences.tobytes(), 9)).decode("ascii")


# --- from the header --------------------------------------------------------------------------------------------------


def read_steps(
    header: StepsHeader, collective: Collective, listed: Callable[[int, bool], Transfers]
) -> tuple[Steps, tuple[range, ...]]:
    """The steps of a plan.

    Args:
        header: of the file.
        collective: what the plan claims to do.
        listed: step of the file, whether paths of its circuits are stated -> its transfers.
    Returns: the steps, and those that each step of the file stands for.
    Raises: ValueError: digits, parts or rows that define no steps of that collective.
    """
    try:
        return _read(header, collective, listed)
    except (OpticclError, zlib.error, OverflowError, ValueError) as error:
        raise ValueError(f"steps: {error}") from None


def _read(
    header: StepsHeader, collective: Collective, listed: Callable[[int, bool], Transfers]
) -> tuple[Steps, tuple[range, ...]]:
    digits = len(header.radices)
    if not 1 <= digits <= MOST_DIGITS or min(header.radices) < 1:
        raise ValueError(f"radices={header.radices[:8]}: 1 to {MOST_DIGITS} numbers of 1 or more")
    order = None if header.order is None else _unpack(header.order, collective.num_ranks).astype(np.int32)
    space = Space(tuple(header.radices), order)
    if space.num_ranks != collective.num_ranks:
        raise ValueError(f"radices={header.radices[:8]} make {space.num_ranks:,} ranks, not {collective.num_ranks:,}")
    parts = [_part(fields, header.radices, number) for number, fields in enumerate(header.parts)]
    chunks = sum(part.size for part in parts)
    if chunks != collective.num_chunks:
        raise ValueError(f"parts have {chunks:,} chunks, not {collective.num_chunks:,}")
    total = sum(phase.rows.num_rows for phase in header.phases if phase.rows is not None)
    if total > MOST_PHASE_ROWS or any(p.rows is not None and p.rows.num_rows < 1 for p in header.phases):
        raise ValueError(f"phases have {total:,} rows; 1 or more each, {MOST_PHASE_ROWS:,} together")
    phases, file_starts = list[Phase](), list[int]()
    for number, one in enumerate(header.phases):
        name = f"phases[{number}]"
        if not 1 <= one.count <= collective.num_ranks + collective.num_chunks:
            most = collective.num_ranks + collective.num_chunks
            raise ValueError(f"{name}.count={one.count} is not 1 to {most:,}, the ranks and chunks together")
        if one.rows is None:
            if one.count != 1 or one.moves or one.hops is not None:
                raise ValueError(
                    f"{name} has no rows, but {one.count} steps; steps without rows are phases of their own"
                )
            stated = one.states_paths
            phases.append(Phase(lambda k, at=number, stated=stated: listed(file_starts[at], stated)))  # type: ignore[misc]
        else:
            if any(not 0 <= digit < digits for digit in one.moves):
                raise ValueError(f"{name}.moves={one.moves[:8]}: digits are 0 to {digits - 1}")
            bundles = (0,) if one.bundles == 0 else _bundles(one.bundles, one.rows.num_rows, name)
            moves = tuple(digit in one.moves for digit in range(digits)) if one.moves else ()
            rows, paths = _rows(one.rows, digits, name), _paths(one, name)
            phases.append(Phase(rows, moves, one.count, bundles, paths=paths))
    steps, ranges = Steps(space, parts, phases), list[range]()
    for number, one in enumerate(header.phases):
        file_starts.append(len(ranges))
        first, end = steps.starts[number : number + 2]
        edges = steps.changes_of(number) if one.same_circuits else range(first, end + 1)
        ranges += [range(a, b) for a, b in pairwise(edges)]
    return steps, tuple(ranges)


def _part(fields_of: list[list[int]], radices: list[int], number: int) -> MessagePart:
    """A part of the message.

    Args:
        fields_of: (digit, stride, radix) each.
        radices: of the digits of ranks.
        number: of the part.
    """
    name, units = f"parts[{number}]", 1
    values: dict[int, list[tuple[int, int]]] = {}
    for field in fields_of:
        if len(field) != _PARTS_OF_FIELD or not -1 <= field[0] < len(radices) or min(field[1:]) < 1:
            raise ValueError(f"{name}: {field[:4]} is not a digit, stride and radix")
        digit, stride, radix = field
        values.setdefault(digit, []).append((stride, radix))
        units *= radix if digit < 0 else 1
    for digit, places in values.items():
        at, whole = 1, units if digit < 0 else radices[digit]
        for stride, radix in sorted(places):
            if stride != at:
                raise ValueError(
                    f"{name}: digit {digit} is not made of the strides {[one for one, _ in sorted(places)][:8]}"
                )
            at *= radix
        if at != whole or (digit < 0 and len(places) > 1):
            raise ValueError(f"{name}: digit {digit} has {at} values there, not {whole}")
    return MessagePart(tuple((d, s, r) for d, s, r in fields_of), units)


def _rows(header: RowsHeader, digits: int, name: str) -> PhaseRows:
    """Rows of a phase.

    Args:
        header: of the file.
        digits: of ranks [count].
        name: of the phase, for messages.
    """
    columns: dict[str, IntArray] = {}
    for field in fields(PhaseRows):
        wide, given = field.name in _WIDE, getattr(header, field.name)
        shape = (header.num_rows, digits) if wide else (header.num_rows,)
        if isinstance(given, int):
            if not -(2**31) <= given < 2**31:
                raise ValueError(f"{name}.rows.{field.name}={given} is beyond 32 bits")
            columns[field.name] = np.broadcast_to(np.int64(given), shape)
        else:
            columns[field.name] = _unpack(given, int(np.prod(shape))).reshape(shape)
    return PhaseRows(**columns)


def _paths(header: PhaseHeader, name: str) -> tuple[IntArray, IntArray] | None:
    """Paths that the rows of a phase state.

    Args:
        header: of the file, with rows.
        name: of the phase, for messages.
    """
    if header.hops is None and header.lengths is None:
        return None
    if header.hops is None or header.lengths is None or header.rows is None:
        raise ValueError(f"{name} has hops without lengths, or lengths without hops")
    lengths = _unpack(header.lengths, header.rows.num_rows)
    total = int(lengths.sum())
    if lengths.min() < 0 or total > MOST_HOPS:
        raise ValueError(f"{name}.lengths: paths of {total:,} links; 0 or more each, {MOST_HOPS:,} together")
    return _unpack(header.hops, total).astype(np.int32), np.r_[0, np.cumsum(lengths)]


def _bundles(given: int | str, num_rows: int, name: str) -> tuple[int, ...]:
    """First row of each bundle.

    Args:
        given: packed.
        num_rows: of the phase [count].
        name: of the phase, for messages.
    """
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(str(given), validate=True), 4 * num_rows + 1)
    starts = np.cumsum(np.frombuffer(raw[: len(raw) // 4 * 4], "<i4").astype(np.int64))
    if not len(starts) or starts[0] or (np.diff(starts) < 1).any() or starts[-1] >= num_rows or len(starts) > num_rows:
        raise ValueError(f"{name}.bundles do not ascend from 0 below {num_rows:,} rows")
    return tuple(starts.tolist())


def _unpack(text: str, count: int) -> IntArray:
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(text, validate=True), 4 * count + 1)
    if len(raw) != 4 * count:
        raise ValueError(f"not {count:,} values")
    values = np.cumsum(np.frombuffer(raw, "<i4").astype(np.int64))
    if len(values) and (values.min() < -(2**31) or values.max() >= 2**31):
        raise ValueError("values beyond 32 bits")
    return values
