"""Wavelengths, and other routes where necessary, for rounds whose sends are known.

A round always has wavelengths if no edge carries more circuits than it has waveguides: then an edge colouring is enough
(Koenig). Otherwise first fit in several orders is tried, and finally the solver.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from opticcl.routing.colouring import edge_colouring
from opticcl.synthesis.packing import RoundOccupancy
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.solver import Clock, run
from opticcl.synthesis.wafer import Wafer

__all__ = ["assign_by_solver", "assign_wavelengths"]

ORDERS = 8  # of first fit


def assign_wavelengths(wafer: Wafer, schedule: SendRounds, clock: Clock, seed: int, effort: float) -> SendRounds | None:
    """The same rounds with wavelengths, or None if none were found for one of them.

    Args:
        wafer: optical resources of the job.
        schedule: sends with a path and without wavelengths.
        clock: time limit.
        seed: seed of the shuffles and of the solver.
        effort: deterministic time of the solver for each round.
    """
    assigned = []
    for sends in schedule:
        light = _coloured(wafer, sends)
        light = _first_fit(wafer, sends, seed) if light is None else light
        light = assign_by_solver(wafer, sends, clock, seed, effort) if light is None else light
        if light is None:
            return None
        assigned.append(light)
    return assigned


def _coloured(wafer: Wafer, sends: Sequence[PieceSend]) -> list[PieceSend] | None:
    """By edge colouring, where the waveguides suffice for any colours."""
    if not sends:
        return []
    load = np.bincount([edge for s in sends for edge in s.path], minlength=len(wafer.room))
    if not wafer.undamaged or (load > wafer.room).any():
        return None
    src, dst = (np.array(ends) for ends in zip(*((s.src, s.dst) for s in sends), strict=True))
    colour = edge_colouring(src, dst, wafer.num_ranks, wafer.num_wavelengths)
    return [s._replace(wavelength=int(c)) for s, c in zip(sends, colour, strict=True)]


def _first_fit(wafer: Wafer, sends: Sequence[PieceSend], seed: int) -> list[PieceSend] | None:
    """Long paths first, then shuffled; the given path first, then the other routes of the pair."""
    random = np.random.default_rng(seed)
    order = sorted(range(len(sends)), key=lambda i: -len(sends[i].path))
    for _ in range(ORDERS):
        light, placed = RoundOccupancy(wafer), {}
        for i in order:
            assigned = light.assign(sends[i].src, sends[i].dst)
            if assigned is None:
                break
            placed[i] = sends[i]._replace(wavelength=assigned[0], path=assigned[1])
        if len(placed) == len(sends):
            return [placed[i] for i in range(len(sends))]
        order = random.permutation(len(sends)).tolist()
    return None


def assign_by_solver(
    wafer: Wafer, sends: Sequence[PieceSend], clock: Clock, seed: int, effort: float
) -> list[PieceSend] | None:
    """By CP-SAT, first on the given paths, which keeps the model small, then on all routes; None if it finds nothing.

    Args:
        wafer: optical resources of the job.
        sends: sends of one round, with a path.
        clock: time limit.
        seed: seed of the solver.
        effort: deterministic time, half of it for each of the two.
    """
    for choose in (False, True):
        coloured = _colours(wafer, sends, clock, seed, effort / 2, choose)
        if coloured is not None:
            return coloured
    return None


def _colours(
    wafer: Wafer, sends: Sequence[PieceSend], clock: Clock, seed: int, effort: float, choose: bool
) -> list[PieceSend] | None:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    at_sender, at_receiver, on_edge = defaultdict(list), defaultdict(list), defaultdict(list)
    choices = []
    for send in sends:
        mine = []
        for path in wafer.routes[send.src, send.dst] if choose else (send.path,):
            for wavelength in np.flatnonzero(wafer.lasers[send.src] & wafer.photodiodes[send.dst]).tolist():
                taken = model.new_bool_var("")
                mine.append((taken, wavelength, path))
                at_sender[send.src, wavelength].append(taken)
                at_receiver[send.dst, wavelength].append(taken)
                for edge in path:
                    on_edge[edge, wavelength].append(taken)
        model.add_exactly_one(taken for taken, _, _ in mine)
        choices.append(mine)
    for ends in (at_sender, at_receiver):
        for some in ends.values():
            model.add_at_most_one(some)
    for (edge, _), some in on_edge.items():
        if len(some) > wafer.room[edge]:
            model.add(sum(some) <= int(wafer.room[edge]))
    answer, solver = run(model, clock, effort=effort, seed=seed)
    if not answer:
        return None
    chosen = [next((w, path) for taken, w, path in mine if solver.boolean_value(taken)) for mine in choices]
    return [s._replace(wavelength=w, path=path) for s, (w, path) in zip(sends, chosen, strict=True)]
