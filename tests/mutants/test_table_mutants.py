"""No field of device tables can be changed unnoticed: each change of one cell is refused, and by its rule."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import opticcl
from opticcl.errors import ParameterError
from opticcl.ir import Op
from opticcl.ir.tables import DataRows
from opticcl.plans.tables import TableMaker
from opticcl.verify.tables.devices import check_tables

SYSTEMS = {
    "ramp": ("ramp:groups=2,racks=2,wavelengths=4", "ramp"),
    "ramp_rounds": ("ramp:groups=3,racks=1,wavelengths=3", "de_bruijn"),
    "sipac": ("sipac:radix=2,levels=2,wavelengths=4", "sipco"),
    "terarack": ("terarack:nodes=5,wavelengths=3", "wrht"),
    "torus": ("terarack_torus:shape=2x3,wavelengths=3,wrap=false", "tree"),
    "oddl": ("oddl:shape=2x3", "ring"),
    "lightpath": ("lightpath:shape=2x3,lasers=4", "lumorph"),
    "lightpath_guides": ("lightpath:shape=2x3,waveguides=4,lasers=3,switch_unit=waveguide", "ring"),
}
DRAWN = 6
"""Rows of each kind that are changed."""


@cache
def tables_of(system):
    """Right tables of a small plan."""
    fabric, algorithm = SYSTEMS[system]
    made = TableMaker(opticcl.compile(fabric, "all_reduce", "100 KB", algorithm=algorithm)).tables()
    assert check_tables(made).ok
    return made


def rules(tables, table, column, row, value):
    """Names of the rules that the tables break with another value in one cell."""
    rows = getattr(tables, table)
    cells = getattr(rows, column).copy()
    cells[row] = value
    return {one.rule for one in check_tables(replace(tables, **{table: replace(rows, **{column: cells})})).violations}


def drawn(rows, system):
    """Some rows of those that a mask or numbers select."""
    rows = np.flatnonzero(rows) if np.asarray(rows).dtype == bool else np.asarray(rows)
    return np.random.default_rng(list(system.encode())).permutation(rows)[:DRAWN].tolist()


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("slot", [0, -2])
def test_a_slot_where_there_is_none(system, slot):
    """Of a device that is set once a job, or of any device on a fabric without slots."""
    tables = tables_of(system)
    once = np.array([group.once_per_job for group in tables.fabric.netlist().groups])
    without = once[tables.settings.kind] | (tables.fabric.slot_s == 0)
    for row in drawn(without, system):
        assert rules(tables, "settings", "step", row, slot) == {"off_slot"}


def test_another_slot():
    """Of RAMP's devices, which all change with a slot."""
    tables = tables_of("ramp")
    for row in drawn(np.arange(len(tables.settings)), "ramp"):
        for value in (-1, -2, tables.settings.step[row] + 1):
            assert rules(tables, "settings", "step", row, value) == {"off_slot"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_sender_that_is_ready_at_another_time(system):
    """It is ready as its last bit leaves."""
    tables = tables_of(system)
    d = tables.data
    for row in drawn(d.sends, system):
        for value in (d.from_s[row], d.until_s[row] * (1 + 1e-6), (d.until_s[row] + tables.total_s) / 2):
            due = set() if value == d.until_s[row] else {"ready_wrong"}
            assert rules(tables, "data", "ready_s", row, value) == due


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_receiver_that_is_ready_at_another_time(system):
    """Earlier or later than arrival and sums make it, with or without an effect on the result."""
    tables = tables_of(system)
    d = tables.data
    for row in drawn(~d.sends, system):
        ready_s = d.ready_s[row]
        for value in ((d.until_s[row] + ready_s) / 2, ready_s * (1 - 1e-6), ready_s * (1 + 1e-6)):
            assert "ready_wrong" in rules(tables, "data", "ready_s", row, value)
        assert "ready_early" in rules(tables, "data", "ready_s", row, d.from_s[row])


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_sender_with_another_operation(system):
    """Than all of its receivers have."""
    tables = tables_of(system)
    d = tables.data
    for op in (Op.COPY, Op.REDUCE, Op.REDUCE_MOVE):
        for row in drawn(d.sends & (d.op != op), system)[:2]:
            assert rules(tables, "data", "op", row, op) == {"op_differs"}


@pytest.mark.parametrize("column", DataRows.KINDS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_no_cell_of_the_data_is_free(system, column):
    """Whatever it is, the next value is refused: by a rule, or as a row that the machine cannot have."""
    tables = tables_of(system)
    d = tables.data
    for row in drawn(np.arange(len(d)), system):
        value = getattr(d, column)[row]
        other = not value if column == "sends" else value * (1 + 1e-6) + 1e-12 if column.endswith("_s") else value + 1
        try:
            found = rules(tables, "data", column, row, value - 1 if column == "kind" else other)
        except ParameterError as refused:
            found = str(refused)
        assert found, (column, row)
        assert not isinstance(found, str) or f"data row {row}" in found


def test_signals_that_several_receive():
    """A split signal has the operation of one of its receivers, whichever."""
    tables = TableMaker(opticcl.compile("sipac:radix=2,levels=2,wavelengths=4", "broadcast", "10 KB")).tables()
    assert check_tables(tables).ok
    d = tables.data
    sends = int(np.flatnonzero(d.sends)[0])
    assert rules(tables, "data", "op", sends, Op.REDUCE) == {"op_differs"}
