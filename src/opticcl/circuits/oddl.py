"""ODDL's wavelengths: a setting of the switches that serves the whole job, then one partner a NIC and round.

A wavelength at an input leads to one output and stays so. A setting is therefore a proper edge colouring of all pairs
that ever communicate over a switch, inputs on one side, outputs on the other: distinct colours at each input and each output.

    halving_doubling, recursive_doubling    colour(i, i XOR 2^b) = b of the coordinate, log2(side) colours
    no NIC ever has a second partner        where parts have failed, and for torus_trees and twisted_grid: all circuits
                                            stand from the first step on
    any other schedule                      as many colours as the busiest port has partners; side - 1 for an all-to-all
                                            by_dimension

Of W wavelengths each of p colours gets floor(W / p) neighbouring ones, bonded.

Source: ODDL sections 3.A, 3.C, table 1.
Reading: table 1 is one of several valid settings and its rule is not given; the rule of the bits is the simplest.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._hold import pairs_of, standing
from opticcl.circuits._order import farthest_first
from opticcl.errors import UnsupportedError
from opticcl.fabrics.oddl import MAX_WAVELENGTHS, Oddl, coordinate, dimension_between, partners_of_side
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.routing.assign import edge_colouring

__all__ = ["RoutingTable", "oddl", "routing_table"]

BIT_BY_BIT = ("halving_doubling", "recursive_doubling")


class RoutingTable(NamedTuple):
    """How the switches are set for a job, one row for each pair that ever communicates, sorted: columns of equal length.

    Args:
        src, dst: sender and receiver.
        dimension: of the switch, which is that of their line.
        wavelength_lo, wavelength_n: wavelengths at the sender's input that lead to the receiver's output.
    """

    src: IntArray
    dst: IntArray
    dimension: IntArray
    wavelength_lo: IntArray
    wavelength_n: IntArray


class Compiled(Protocol):
    """What has a plan of circuits, as the answer of `opticcl.compile`."""

    @property
    def circuits(self) -> CircuitPlan:
        """The plan of circuits."""


def routing_table(plan: CircuitPlan | Compiled) -> RoutingTable:
    """What the switches must be set to before the job starts.

    Raises: UnsupportedError: the plan is for another system.
    Source: section 3.A, table 1.
    """
    plan = plan if isinstance(plan, CircuitPlan) else plan.circuits
    plan.fabric.machine_as(Oddl)
    n, depth = plan.fabric.num_machine_nodes, MAX_WAVELENGTHS + 1
    sides = (n, n, plan.fabric.ports_per_node, depth, depth)
    entries = np.zeros(0, np.int64)
    for steps in plan.schedule.step_classes():
        rows = [(c.src, c.dst, c.port, c.wavelength_lo, c.wavelength_n) for c in plan.rounds(steps.start)]
        entries = np.union1d(entries, np.concatenate([np.ravel_multi_index(columns, sides) for columns in rows]))
    return RoutingTable(*np.unravel_index(entries, sides))


@register_rule("oddl")
def oddl(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The rule of the bits for pairwise exchanges, an edge colouring of all pairs of the job for any other schedule.

    Raises: UnsupportedError: the job needs more wavelengths a switch than the fabric has.
    """
    shape = fabric.machine_as(Oddl).shape
    if schedule.name in BIT_BY_BIT and fabric.node_of_rank is None:
        bonded = _bonded(fabric, np.array([partners_of_side(side) for side in shape]))

        def by_bit(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
            dimension = dimension_between(shape, transfers.src, transfers.dst)
            flipped = coordinate(shape, transfers.src, dimension) ^ coordinate(shape, transfers.dst, dimension)
            bit = np.frexp(flipped)[1] - 1  # exact, where a logarithm need not be
            return _rounds(fabric, transfers, dimension, bit * bonded[dimension], bonded[dimension])

        return by_bit  # one partner a NIC: the order has no effect

    pairs, first, widths = _setting(fabric, schedule)
    if (fabric.conditions or schedule.stands) and len(pairs) and _all_at_once(fabric, schedule, pairs):
        src, dst = np.divmod(pairs, fabric.num_machine_nodes)
        port = dimension_between(shape, src, dst)
        every = Circuits.of(np.arange(len(pairs)), src, dst, port, first, widths, port[:, None])
        return standing(fabric.num_machine_nodes, [every])

    def by_colour(transfers: Transfers) -> tuple[Circuits, ...]:
        dimension = dimension_between(shape, transfers.src, transfers.dst)
        row = np.searchsorted(pairs, _pair(fabric, transfers.src, transfers.dst))
        return _rounds(fabric, transfers, dimension, first[row], widths[row])

    return farthest_first(fabric.num_machine_nodes, by_colour)


def _bonded(fabric: Fabric, num_colours: IntArray) -> IntArray:
    """Wavelengths that are bonded for each colour, by dimension.

    Raises: UnsupportedError: fewer wavelengths than colours.
    """
    needed, has = int(num_colours.max()), fabric.num_wavelengths
    if needed > has:
        way_out = f"oddl:wavelengths={needed}" if needed <= MAX_WAVELENGTHS else "a shape with shorter sides"
        raise UnsupportedError(f"oddl: needs {needed} wavelengths a switch, has {has}; try {way_out}")
    return has // np.maximum(num_colours, 1)


def _pair(fabric: Fabric, src: IntArray, dst: IntArray) -> IntArray:
    """One number for each ordered pair of nodes."""
    return src.astype(np.int64) * fabric.num_machine_nodes + dst


def _setting(fabric: Fabric, schedule: Schedule) -> tuple[IntArray, IntArray, IntArray]:
    """Setting of all switches for the whole job.

    Returns: the pairs that ever communicate, sorted; first wavelength of each; number of wavelengths of each; int64 (pairs,).
    """
    shape = fabric.machine_as(Oddl).shape
    pairs = pairs_of(schedule, fabric.num_machine_nodes)
    src, dst = np.divmod(pairs, fabric.num_machine_nodes)
    dimension = dimension_between(shape, src, dst)
    joined = dimension >= 0  # `lower` refuses the others
    pairs, src, dst, dimension = pairs[joined], src[joined], dst[joined], dimension[joined]

    of_dimension = [np.flatnonzero(dimension == d) for d in range(len(shape))]
    num_colours = np.array([_busiest(src[rows], dst[rows]) for rows in of_dimension])
    widths = _bonded(fabric, num_colours)[dimension]
    colour = np.zeros(len(pairs), np.int64)
    for rows, count in zip(of_dimension, num_colours, strict=True):  # no two switches of a dimension share a node
        colour[rows] = edge_colouring(src[rows], dst[rows], fabric.num_machine_nodes, count)
    return pairs, colour * widths, widths


def _all_at_once(fabric: Fabric, schedule: Schedule, pairs: IntArray) -> bool:
    """Whether every NIC has one partner in the whole job, and no step more than one transfer for it.

    Args:
        fabric: with NICs.
        schedule: of the job.
        pairs: that ever communicate, as `_pair` numbers them.
    """
    src, dst = np.divmod(pairs, fabric.num_machine_nodes)
    dimension = dimension_between(fabric.machine_as(Oddl).shape, src, dst)
    if _busiest(src * fabric.ports_per_node + dimension, dst * fabric.ports_per_node + dimension) > 1:
        return False
    steps = (schedule.step(steps.start) for steps in schedule.step_classes())
    return all(len(np.unique(_pair(fabric, step.src, step.dst))) == len(step) for step in steps)


def _rounds(
    fabric: Fabric, transfers: Transfers, dimension: IntArray, wavelength_lo: IntArray, wavelength_n: IntArray
) -> tuple[Circuits, ...]:
    """Circuits of a step, in as many rounds as the busiest NIC has transfers in it.

    Where every NIC has one partner, those of all NICs go by their size, so that none waits long in a round.
    """
    sender = transfers.src * np.int64(fabric.ports_per_node) + dimension
    receiver = transfers.dst * np.int64(fabric.ports_per_node) + dimension
    num_rounds = _busiest(sender, receiver)
    rows, path = np.arange(len(transfers)), dimension[:, None]
    circuits = Circuits.of(rows, transfers.src, transfers.dst, dimension, wavelength_lo, wavelength_n, path)
    if num_rounds == 1:
        return (circuits,)
    ports = fabric.num_machine_nodes * fabric.ports_per_node
    if _busiest(*np.divmod(np.unique(sender * ports + receiver), ports)) > 1:
        number = edge_colouring(sender, receiver, ports, num_rounds)
    else:
        by_size = np.lexsort((-transfers.size_chunks(), sender))
        number = np.empty(len(rows), np.int64)
        number[by_size] = rows - np.searchsorted(sender[by_size], sender[by_size])
    order = np.argsort(number, kind="stable")
    return tuple(circuits.take(some) for some in np.split(order, np.cumsum(np.bincount(number))[:-1]))


def _busiest(left: IntArray, right: IntArray) -> int:
    """The most edges that meet in one vertex."""
    return max(int(np.bincount(side).max(initial=0)) for side in (left, right))
