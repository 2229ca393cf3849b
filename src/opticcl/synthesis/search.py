"""Synthesis of the schedule with the fewest rounds for a collective on a wafer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opticcl.circuits.lightpath import split_by_waveguides
from opticcl.collective import Request, as_request
from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.fabrics import as_fabric, job
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import CircuitPlan, Circuits, Collective, Fabric, Op, ProgressCallback, Schedule, Transfers, no_progress
from opticcl.registry import whole_number, write_call
from opticcl.synthesis.counting import Bound
from opticcl.synthesis.multicast import Multicast
from opticcl.synthesis.optimality_gap import OptimalityGap, SearchProblem, Trial, close_gap
from opticcl.synthesis.partial_schedule import SendRounds, reversed_as_reduction
from opticcl.synthesis.problem import Problem, problem_of, registered_problem, require_reachable
from opticcl.synthesis.reductions import Reduction
from opticcl.synthesis.solver import INSTALL, Clock, has_solver, require_solver
from opticcl.synthesis.wafer import Wafer, wafer_of, with_all_routes
from opticcl.units import counted, quantity
from opticcl.verify import verify

__all__ = ["Method", "Synthesis", "synthesize"]

Method = Literal["auto", "constructed", "solver"]
LONGEST_S = 1e6
TIME_REVERSED = "with time reversed, where sums are copies and lasers are photodiodes"


@dataclass(frozen=True, slots=True, eq=False)
class Synthesis:
    """A schedule, and what is known about better ones.

    Args:
        circuits: the schedule with its circuits, verified; a step is a round. `opticcl.Plan(circuits, size)` makes it a plan.
        bound: lower bound on the rounds of every schedule, with its reason.
        bound_on_routes: lower bound on the rounds of schedules on the given routes in which ranks relay only what they need.
        how: what made the schedule.
        seconds: duration of the search [s].
        trials: calls of the solver, in order.
        interrupted: whether the user ended the search.
        note: why the gap is open, or "".
    """

    circuits: CircuitPlan
    bound: Bound
    bound_on_routes: Bound
    how: str
    seconds: float
    trials: tuple[Trial, ...]
    interrupted: bool = False
    note: str = ""

    @property
    def num_steps(self) -> int:
        """Rounds of the schedule [count]."""
        return self.circuits.schedule.num_steps

    @property
    def lower_bound(self) -> int:
        """Lower bound on the rounds of every schedule [count]."""
        return self.bound.rounds

    @property
    def optimal(self) -> bool:
        """Whether the schedule is proven to have the fewest rounds."""
        return self.num_steps <= self.bound.rounds

    @property
    def optimal_on_routes(self) -> bool:
        """Whether no schedule on the given routes, in which ranks relay only what they need, has fewer rounds."""
        return self.num_steps <= self.bound_on_routes.rounds

    def record(self) -> dict[str, Any]:
        """The result as plain data for JSON."""
        c, fabric = self.circuits.schedule.collective, self.circuits.fabric
        parameters = {k: v for k, v in fabric.parameters.items() if v is not None}
        return {
            "num_steps": self.num_steps,
            "lower_bound": self.lower_bound,
            "optimal": self.optimal,
            "optimal_on_routes": self.optimal_on_routes,
            "seconds": self.seconds,
            "bound": f"{self.bound.name}: {self.bound.why}",
            "bound_on_routes": f"{self.bound_on_routes.name}: {self.bound_on_routes.why}",
            "made_by": self.how,
            "note": self.note,
            "interrupted": self.interrupted,
            "fabric": write_call(fabric.name, parameters),
            "collective": c.name,
            "num_nodes": c.num_ranks,
            "chunks": c.num_chunks,
            "num_transfers": sum(len(self.circuits.schedule.step(i)) for i in range(self.num_steps)),
            "tried": [trial._asdict() for trial in self.trials],
        }

    def __str__(self) -> str:
        c = self.circuits.schedule.collective
        proof = "optimal" if self.optimal else f"at least {self.lower_bound}"
        searched = ""
        if self.bound_on_routes.rounds > self.lower_bound:
            proof += ", optimal on the given routes" if self.optimal_on_routes else ""
            searched = f"\n  {self.bound_on_routes.why}"
        chunks, nodes, rounds = (
            counted(n, word) for n, word in ((c.num_chunks, "chunk"), (c.num_ranks, "node"), (self.num_steps, "round"))
        )
        return (
            f"{c.name} of {chunks} among {nodes}: {rounds}, {proof}\n"
            f"  made by      {self.how}\n"
            f"  lower bound  {self.lower_bound} ({self.bound.name}): {self.bound.why}{searched}"
        )


def synthesize(
    fabric: Fabric | str,
    collective: Request | Collective | str,
    *,
    chunks: int = 1,
    root: int = 0,
    nodes: Sequence[int] | None = None,
    time_limit: str | float = 30.0,
    seed: int = 0,
    method: Method = "auto",
    routes: int = 2,
    progress: ProgressCallback = no_progress,
) -> Synthesis:
    """Search for the schedule with the fewest rounds, and prove that no better one exists.

    Args:
        fabric: a lightpath, or "lightpath:key=value,...".
        collective: such as "all_gather", or a custom one (`read_collective`).
        chunks: parts of each rank's block where ranks have blocks, of the message where they have none [count].
        root: rank that a rooted collective starts or ends at.
        nodes: nodes of the fabric that take part, in the order of the ranks; None: all.
        time_limit: "10 s" or seconds; the best schedule found by then is returned.
        seed: seed of everything random. Equal seeds give equal results, unless the time limit ends the search.
        method: auto: constructed schedules, then the solver where they leave a gap; constructed: no solver; solver: an error
            where no solver is installed.
        routes: paths that each pair may choose from [count].
        progress: called with the state of the search.
    Returns: a verified schedule; at worst the best constructed one.
    Raises: UnsupportedError: another fabric, no schedule exists (with the certificate), or no solver where it is required;
        ParameterError, FabricError, UnknownNameError.
    Source: LUMORPH algorithm 1, corrected.

    >>> print(synthesize("lightpath:shape=2x4,lasers=4,waveguides=1", "all_gather"))
    all_gather of 8 chunks among 8 nodes: 2 rounds, optimal
      made by      rows and columns
      lower bound  2 (receives): rank 0 must receive 7 pieces and has 4 photodiodes
    """
    chunks, root = whole_number(chunks, "synthesize: chunks"), whole_number(root, "synthesize: root")
    seed, routes = whole_number(seed, "synthesize: seed"), whole_number(routes, "synthesize: routes")
    limit_s = quantity(time_limit, "s", "time_limit")
    if not 0 < limit_s <= LONGEST_S:
        raise ParameterError(f"synthesize: time_limit={time_limit} is not above 0 and at most {LONGEST_S:g} s; try 30s")
    if seed < 0 or seed >= 2**31:
        raise ParameterError(f"synthesize: seed={seed} is not 0 to 2**31 - 1; try 0")
    if method not in ("auto", "constructed", "solver"):
        raise ParameterError(f"synthesize: method={method!r} is none of auto, constructed, solver")
    if method == "solver":
        require_solver()
    where = as_fabric(fabric)
    where = where if nodes is None else job(where, nodes)
    clock = Clock(limit_s, progress)
    wafer = wafer_of(where, routes)
    problem = _problem(collective, where.num_nodes, chunks, root)
    require_reachable(problem, wafer)

    single_root = problem.adds and bool((problem.after.sum(axis=1) == 1).all())
    task = _search_problem(problem, wafer, seed, single_root)
    gap = task.start(clock, clock.report)
    if gap.bound.rounds and not gap.schedule:
        raise UnsupportedError(
            f"synthesize: no schedule of {problem.collective.name} could be constructed; try a smaller job"
        )
    if method != "constructed" and has_solver():
        try:
            close_gap(task, gap, clock, clock.report)
            if gap.proven.rounds < gap.bound.rounds and (everywhere := with_all_routes(wafer, where)):
                gap.prove_for_all(_search_problem(problem, everywhere, seed, single_root), clock, clock.report)
        except KeyboardInterrupt:  # between two calls of the solver, which handles it itself
            clock.interrupted = True
    if len(gap.schedule) < gap.bound.rounds:
        raise BoundError(f"{problem.collective.name}: {len(gap.schedule)} rounds are below the bound: {gap.bound}")
    schedule = reversed_as_reduction(gap.schedule, wafer.time_reversed()) if single_root else gap.schedule
    circuits = _plan(problem, where, schedule, gap.how)
    verify(circuits).raise_if_bad()
    bound, on_routes = gap.proven, gap.bound
    if single_root and bound.rounds:
        bound, on_routes = (one._replace(why=f"{TIME_REVERSED}: {one.why}") for one in (bound, on_routes))
    trials, note = tuple(gap.trials), _note(gap, method, clock)
    return Synthesis(circuits, bound, on_routes, gap.how, clock.elapsed_s, trials, clock.interrupted, note)


def _search_problem(problem: Problem, wafer: Wafer, seed: int, single_root: bool) -> SearchProblem:
    """What is searched."""
    if single_root:
        return Multicast(wafer.time_reversed(), problem.after, problem.before | problem.after, seed)
    if problem.adds:
        return Reduction(wafer, problem.before, problem.after, seed)
    return Multicast(wafer, problem.before, problem.after, seed)


def _problem(collective: Request | Collective | str, num_nodes: int, chunks: int, root: int) -> Problem:
    """The problem of a collective on that many ranks."""
    if isinstance(collective, Collective):
        if collective.num_ranks != num_nodes:
            raise ParameterError(
                f"{collective.name}: has {counted(collective.num_ranks, 'rank')} and the job has "
                f"{counted(num_nodes, 'node')}; use that many nodes, such as --job 0-{collective.num_ranks - 1}"
            )
        return problem_of(collective)
    wanted = as_request(collective, root)
    return registered_problem(wanted, num_nodes, chunks)


def _note(gap: OptimalityGap, method: Method, clock: Clock) -> str:
    """Why the gap is open, or ""."""
    if gap.fewer:
        return (
            f"on other routes {counted(gap.fewer, 'round')} {'is' if gap.fewer == 1 else 'are'} enough; try more routes"
        )
    if gap.closed:
        return ""
    if clock.interrupted:
        return "interrupted: the best schedule so far"
    if clock.remaining_s <= 0:
        return "the time limit was reached"
    if method == "constructed":
        return "constructed only, as requested"
    if not has_solver():
        return f"constructed only: the search needs OR-Tools, {INSTALL}"
    return "the remaining models are too large or too hard"


def _plan(problem: Problem, fabric: Fabric, rounds: SendRounds, how: str) -> CircuitPlan:
    """The schedule as a plan, one step per round."""
    c = problem.collective
    apart = 1 if c.keeps_apart else None
    steps: list[tuple[Transfers, Circuits]] = []
    for sends in rounds:
        piece, src, dst, adds, wavelength = (np.array(column) for column in list(zip(*sends, strict=True))[:5])
        op = np.where(adds, Op.REDUCE, Op.MOVE if c.keeps_apart else Op.COPY)
        transfers = Transfers.of(src, dst, problem.chunk[piece], 1, op, apart)
        hops = np.array([edge for send in sends for edge in send.path], np.int32)
        ends = np.cumsum([0, *(len(send.path) for send in sends)])
        at, to = fabric.machine_nodes(src), fabric.machine_nodes(dst)
        circuits = Circuits.of(np.arange(len(sends)), at, to, 0, wavelength, 1, (hops, ends))
        steps.append((transfers, _with_waveguides(fabric, circuits, len(steps))))
    schedule = Schedule("synthesized", c, len(steps), lambda i: steps[i][0], parameters={"how": how})
    return CircuitPlan(fabric, schedule, lambda i: (steps[i][1],))


def _with_waveguides(fabric: Fabric, circuits: Circuits, number: int) -> Circuits:
    """The circuits of a round with their waveguides, where a switch moves a whole one.

    Raises: UnsupportedError: they do not fit at once, which the search does not consider.
    """
    if fabric.machine_as(Lightpath).switch_unit == "wavelength":
        return circuits
    found = split_by_waveguides(fabric, circuits)
    if len(found) > 1:
        raise UnsupportedError(
            f"synthesize: the circuits of round {number} fit with switch_unit=wavelength; where a switch moves a whole "
            f"waveguide they take {len(found)} rounds; try more waveguides, or opticcl compile"
        )
    return found[0]
