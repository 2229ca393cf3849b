"""Rows of device tables that a machine or a collective cannot have, and what is said of rows that break a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, Op
from opticcl.ir.limits import limit
from opticcl.ir.netlist import ElementGroup, Netlist
from opticcl.ir.programme import DeviceTable
from opticcl.ir.tables import Tables, TableViolation
from opticcl.optics.device_changes import places_of, settable, states_of

__all__ = ["broken", "known_ranks", "refuse_unknown_settings"]

MOST_STEP = limit("rows.MOST_STEP")


def broken(rule: str, rows: IntArray, words: Callable[[int], tuple[Any, str, str, str]]) -> list[TableViolation]:
    """The first of the rows that break a rule, with their number; nothing, if none does.

    Args:
        rule: that is broken.
        rows: int64 (n,).
        words: row -> when [s], where, what is expected, what is found.
    """
    if not len(rows):
        return []
    at_s, where, expected, found = words(int(rows[0]))
    return [TableViolation(rule, float(at_s), where, expected, found, len(rows))]


def refuse_unknown_settings(netlist: Netlist, rows: DeviceTable) -> None:
    """Refuse settings of devices, places or states that a netlist does not have.

    Raises: ParameterError.
    """
    _refuse_times("settings", "from_s", rows.begin_s)
    can_be_set = settable(netlist)
    for position in np.unique(rows.kind).tolist():
        group, mine = netlist.groups[position], np.flatnonzero(rows.kind == position)
        if position not in can_be_set:
            raise ParameterError(f"settings row {mine[0]}: {group.name} has no states that can be set")
        _refuse_numbers("settings", group, rows.device, mine)
        states = states_of(netlist, group) or range(-1, (1 << 40) + 1)
        for name, column, known in (
            ("index", rows.index, range(places_of(netlist, group))), ("value", rows.setting, states)
        ):  # fmt: skip
            bad = mine[(column[mine] < known[0]) | (column[mine] > known[-1])]
            _refuse("settings", bad, f"{name}={{}}; {group.name} has {known[0]} to {known[-1]}", column)


def known_ranks(netlist: Netlist, tables: Tables) -> IntArray:
    """Rank of each row of data; refuses rows of what neither the netlist nor the collective has.

    Raises: ParameterError.
    """
    d, c = tables.data, tables.collective
    for name in ("from_s", "until_s", "ready_s"):
        _refuse_times("data", name, getattr(d, name))
    ranks = np.empty(len(d), np.int64)
    for action, sends, name in (("sends", True, netlist.transmitter), ("receives", False, netlist.photodiodes.name)):
        position = netlist.position[name]
        mine = np.flatnonzero(d.sends == sends)
        wrong = mine[d.kind[mine] != position]
        given = netlist.groups[int(d.kind[wrong[0]])].name if len(wrong) else ""
        _refuse("data", wrong, f"{given} {action}, but in {netlist.name} only {name} does")
        _refuse_numbers("data", netlist.groups[position], d.device, mine)
        node_of = netlist.groups[position].node_of
        assert node_of is not None
        ranks[mine] = tables.fabric.ranks_at(node_of(d.device[mine]))
    _refuse("data", np.flatnonzero(ranks < 0), "its device is on no node of the job")
    for name, low, high in (
        ("step", -1 if tables.assumptions is None else 0, MOST_STEP), ("wavelength", 0, netlist.num_wavelengths - 1),
        ("op", 0, max(Op)), ("chunk_lo", 0, c.num_chunks - 1),
        ("chunk_n", 1, c.num_chunks), ("parts", 1, c.num_ranks), ("shares", 1, 1 << 20), ("share", 0, 1 << 20),
    ):  # fmt: skip
        column = getattr(d, name)
        bad = np.flatnonzero((column < low) | (column > high))
        _refuse("data", bad, f"{name}={{}} is none of {low} to {high}", column)
    others = (Op.REDUCE, Op.REDUCE_MOVE) if c.keeps_apart else (Op.MOVE,)
    for over, what in (
        (d.chunk_lo + d.chunk_n > c.num_chunks, f"ends beyond the {c.num_chunks} chunks"),
        (d.share >= d.shares, "has a share beyond its shares"),
        (d.until_s < d.from_s, "has until_s before from_s"),
        (np.isin(d.op, others), f"op={{}} is none of the operations of {c.name}"),
    ):
        _refuse("data", np.flatnonzero(over), what, d.op)
    return ranks


def _refuse(table: str, rows: IntArray, what: str, values: Sequence[Any] | npt.NDArray[Any] = ()) -> None:
    """Refuse the first of some rows.

    Args:
        table: that has them, in words.
        rows: int64 (n,).
        what: is wrong with it, with {} for its value.
        values: of all rows of the table.
    Raises: ParameterError: there is one.
    """
    if len(rows):
        row = int(rows[0])
        raise ParameterError(f"{table} row {row}: {what.format(values[row]) if len(values) else what}")


def _refuse_times(table: str, name: str, times: npt.NDArray[np.float64]) -> None:
    bad = np.flatnonzero(~((times >= 0) & np.isfinite(times)))
    _refuse(table, bad, f"{name}={{}} is not a time from 0 on", times)


def _refuse_numbers(table: str, group: ElementGroup, number: IntArray, rows: IntArray) -> None:
    """Refuse devices that a group does not have.

    Args:
        table: in words.
        group: of the devices.
        number: of all rows.
        rows: of the group.
    """
    bad = rows[(number[rows] < 0) | (number[rows] >= group.num_devices)]
    _refuse(table, bad, f"{group.name}:{{}} does not exist; {group.name} has 0 to {group.num_devices - 1}", number)
