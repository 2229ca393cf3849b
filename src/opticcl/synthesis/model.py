"""Algorithm 1 for multicasts as a decision model: is there a schedule of R rounds?

    x[r, s, d, p]    rank s sends piece p to rank d in round r; s holds or needs p, d needs it
    has[r, d, p]     d holds p before round r:  has[r + 1, d, p] = has[r, d, p] + sum_s x[r, s, d, p],  has[R, d, p] = 1
    y[r, s, d, i]    circuits from s to d on route i:  sum_i y = sum_p x

    x[r, s, d, p] <= has[r, s, p];   sum over d and p <= lasers of s;   sum over s and p <= photodiodes of d
    sum of y over the routes that contain e <= lasers x waveguides of e

Wavelengths are not part of the model: with enough waveguides they always exist (edge colouring), otherwise `light`
searches for them. So the model is a relaxation: if it is infeasible, there is no schedule on these routes in which ranks
relay only pieces that they need.

Source: LUMORPH algorithm 1.
Reading: as printed, (3) lets only one rank in total receive a piece, (4) and (5) force every laser to be used, and (2)
omits the initial holders of a piece. With R fixed, R_r, (7) to (9) and the objective are not needed.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.solver import Clock, run
from opticcl.synthesis.wafer import Wafer

__all__ = ["MOST_VARIABLES", "num_variables", "on_routes", "solve_multicast"]

MOST_VARIABLES = 400_000  # beyond, building the model takes longer than the other constructions

Flags = npt.NDArray[np.bool_]


def num_variables(before: Flags, after: Flags, rounds: int, direct: bool) -> int:
    """Number of send variables of the model [count].

    Args:
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
        rounds: rounds of the model [count].
        direct: whether only initial holders send.
    """
    senders = before.sum(axis=1) if direct else (before | after).sum(axis=1) - 1
    return int(rounds * ((after & ~before).sum(axis=1) * senders).sum())


def solve_multicast(
    rounds: int,
    wafer: Wafer,
    before: Flags,
    after: Flags,
    clock: Clock,
    *,
    effort: float,
    seed: int,
    direct: bool = False,
    hint: SendRounds | None = None,
) -> tuple[bool | None, SendRounds]:
    """Solve the model for a number of rounds.

    Args:
        rounds: rounds of the schedule [count].
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
        clock: time limit.
        effort, seed: deterministic time and seed of the solver.
        direct: only initial holders of a piece send it.
        hint: sends that the solver tries first.
    Returns: (whether the model is feasible, None if not known; sends with paths and without wavelengths).
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    at_sender, at_receiver, of_pair = defaultdict(list), defaultdict(list), defaultdict(list)
    sends: dict[PieceSend, tuple[int, Any]] = {}
    hinted = {(r, s.piece, s.src, s.dst) for r, some in enumerate(hint or []) for s in some}
    for piece in range(len(before)):
        holders = np.flatnonzero(before[piece]).tolist()
        wanting = np.flatnonzero(after[piece] & ~before[piece]).tolist()
        has: dict[int, Any] = dict.fromkeys(wanting, 0)
        for r in range(rounds):
            then: dict[int, Any] = {}
            for dst in wanting:
                coming = []
                for src in holders if direct or r == 0 else [*holders, *wanting]:
                    if src == dst or not wafer.routes[src, dst]:
                        continue
                    x = model.new_bool_var("")
                    coming.append(x)
                    sends[PieceSend(piece, src, dst, wavelength=r)] = (r, x)
                    at_sender[r, src].append(x)
                    at_receiver[r, dst].append(x)
                    of_pair[r, src, dst].append(x)
                    if src in has:
                        model.add_implication(x, has[src])
                    if hint:
                        model.add_hint(x, (r, piece, src, dst) in hinted)
                then[dst] = 1 if r == rounds - 1 else model.new_bool_var("")
                model.add(then[dst] == has[dst] + sum(coming))
            has = then
    for ends, light in ((at_sender, wafer.lasers), (at_receiver, wafer.photodiodes)):
        at_once = light.sum(axis=1).tolist()
        for (_, rank), some in ends.items():
            if len(some) > at_once[rank]:
                model.add(sum(some) <= at_once[rank])
    counts = on_routes(model, wafer, of_pair)
    answer, solver = run(model, clock, effort=effort, seed=seed)
    schedule: SendRounds = [[] for _ in range(rounds)]
    if answer:
        left = {key: [solver.value(count) for count in some] for key, some in counts.items()}
        for send, (r, x) in sends.items():
            if solver.boolean_value(x):
                route = next(i for i, count in enumerate(left[r, send.src, send.dst]) if count)
                left[r, send.src, send.dst][route] -= 1
                schedule[r].append(send._replace(wavelength=-1, path=wafer.routes[send.src, send.dst][route]))
    return answer, schedule


def on_routes(
    model: Any, wafer: Wafer, of_pair: dict[tuple[int, int, int], list[Any]]
) -> dict[tuple[int, int, int], list[Any]]:
    """Constrain circuits to routes such that no edge exceeds its capacity.

    Args:
        model: CP-SAT model.
        wafer: optical resources of the job.
        of_pair: send variables of each (round, sender, receiver).
    Returns: circuits of each (round, sender, receiver) on each of its routes.
    """
    capacity = wafer.capacity()
    on_edge = defaultdict(list)
    counts = {}
    for (r, src, dst), some in of_pair.items():
        routes = wafer.routes[src, dst]
        if len(routes) == 1:
            split = [sum(some)]
        else:
            split = [model.new_int_var(0, min(len(some), wafer.num_wavelengths), "") for _ in routes]
            model.add(sum(split) == sum(some))
        counts[r, src, dst] = split
        for path, count in zip(routes, split, strict=True):
            for edge in path:
                on_edge[r, edge].append((count, len(some)))
    for (_, edge), load in on_edge.items():
        if sum(most for _, most in load) > capacity[edge]:
            model.add(sum(count for count, _ in load) <= int(capacity[edge]))
    return counts
