"""The fewest rounds for a collective on a wafer: what is constructed, what is found, what is proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from opticcl.collective import Request, collective_name
from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.fabric import as_fabric, job
from opticcl.ir import CircuitPlan, Circuits, Collective, Fabric, Op, Schedule, Transfers
from opticcl.registry import whole_number
from opticcl.synthesis.counting import Bound
from opticcl.synthesis.draft import Draft, turned_round
from opticcl.synthesis.gap import Gap, Task, Told, Trial, close
from opticcl.synthesis.problem import Problem, asked_for, given_by, refuse_what_light_cannot_do
from opticcl.synthesis.solver import INSTALL, Clock, has_solver, require_solver
from opticcl.synthesis.spread import Spread
from opticcl.synthesis.sums import Sums
from opticcl.synthesis.wafer import wafer_of
from opticcl.units import counted, quantity
from opticcl.verify import verify

__all__ = ["Method", "Synthesis", "synthesize"]

Method = Literal["auto", "constructed", "solver"]
LONGEST_S = 1e6
TURNED = "read backwards, where sums are copies and lasers are photodiodes"


@dataclass(frozen=True, slots=True, eq=False)
class Synthesis:
    """A schedule, and what is known about better ones.

    Args:
        circuits: the schedule with its light, verified; a step is a round. `opticcl.Plan(circuits, size)` makes it a plan.
        bound: no schedule takes fewer rounds, and why.
        how: what made the schedule.
        seconds: that it took [s].
        trials: questions to the solver, in order.
        interrupted: whether the user ended the search.
        note: what else there is to say, or "".
    """

    circuits: CircuitPlan
    bound: Bound
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
        """Rounds that every schedule takes [count]."""
        return self.bound.rounds

    @property
    def optimal(self) -> bool:
        """Whether no schedule takes fewer rounds."""
        return self.num_steps <= self.bound.rounds

    def __str__(self) -> str:
        c = self.circuits.schedule.collective
        proof = "optimal" if self.optimal else f"{self.lower_bound} at least"
        chunks, nodes, rounds = (
            counted(n, word) for n, word in ((c.num_chunks, "chunk"), (c.num_ranks, "node"), (self.num_steps, "round"))
        )
        return (
            f"{c.name} of {chunks} among {nodes}: {rounds}, {proof}\n"
            f"  made by      {self.how}\n"
            f"  lower bound  {self.lower_bound} ({self.bound.name}): {self.bound.why}"
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
    told: Told = lambda text: None,
) -> Synthesis:
    """Look for the schedule with the fewest rounds, and prove that there is no better one.

    Args:
        fabric: a lightpath, or "lightpath:key=value,...".
        collective: such as "all_gather", or one of the user's own (`read_collective`).
        chunks: parts of each rank's block where ranks have blocks, of the message where they have none [count].
        root: rank that a rooted collective starts or ends at.
        nodes: the nodes of the fabric that take part, in the order of the ranks; None: all.
        time_limit: "10 s" or seconds; the best schedule found by then is the answer.
        seed: of everything that is drawn. The same seed gives the same answer, unless the time limit cuts a search short.
        method: auto: constructed schedules, then the solver where they leave a gap; constructed: no solver; solver: refuse to
            go on without it.
        routes: paths that each pair may choose from [count].
        told: told in words what is being tried.
    Returns: a verified schedule; at worst the best constructed one.
    Raises: UnsupportedError: another fabric, no schedule exists (with the certificate), or no solver where it is demanded;
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
    clock = Clock(limit_s, told)
    wafer = wafer_of(where, routes)
    problem = _problem(collective, where.num_nodes, chunks, root)
    refuse_what_light_cannot_do(problem, wafer)

    turned = problem.adds and bool((problem.after.sum(axis=1) == 1).all())
    task: Task
    if turned:  # a sum that one rank wants is a piece that spreads from there, with time turned round
        task = Spread(wafer.backwards(), problem.after, problem.before | problem.after, seed)
    elif problem.adds:
        task = Sums(wafer, problem.before, problem.after, seed)
    else:
        task = Spread(wafer, problem.before, problem.after, seed)
    gap = task.start(clock, clock.tell)
    if gap.bound.rounds and not gap.draft:
        raise UnsupportedError(
            f"synthesize: found no way to construct {problem.collective.name}; try a smaller part of it"
        )
    if method != "constructed" and has_solver():
        try:
            close(task, gap, clock, clock.tell)
        except KeyboardInterrupt:  # between two questions; the solver hears it itself
            clock.interrupted = True
    if len(gap.draft) < gap.bound.rounds:
        raise BoundError(f"{problem.collective.name}: {len(gap.draft)} rounds are below the bound: {gap.bound}")
    draft = turned_round(gap.draft, wafer.backwards()) if turned else gap.draft
    circuits = _plan(problem, where, draft, gap.how)
    verify(circuits).raise_if_bad()
    bound = gap.bound._replace(why=f"{TURNED}: {gap.bound.why}") if turned and gap.bound.rounds else gap.bound
    trials, note = tuple(gap.trials), _note(gap, method, clock)
    return Synthesis(circuits, bound, gap.how, clock.spent_s, trials, clock.interrupted, note)


def _problem(collective: Request | Collective | str, num_nodes: int, chunks: int, root: int) -> Problem:
    """What is asked for, on that many ranks."""
    if isinstance(collective, Collective):
        if collective.num_ranks != num_nodes:
            raise ParameterError(
                f"{collective.name}: is for {counted(collective.num_ranks, 'rank')} and the job has "
                f"{counted(num_nodes, 'node')}; give it as many, such as --job 0-{collective.num_ranks - 1}"
            )
        return given_by(collective)
    wanted = collective if isinstance(collective, Request) else Request(collective_name(collective), root)
    return asked_for(wanted, num_nodes, chunks)


def _note(gap: Gap, method: Method, clock: Clock) -> str:
    """Why the gap is still open, if it is."""
    if gap.closed:
        return ""
    if clock.interrupted:
        return "interrupted: the best schedule so far"
    if clock.left_s <= 0:
        return "the time limit is over"
    if method == "constructed":
        return "constructed only, as asked for"
    if not has_solver():
        return f"constructed only: the search needs OR-Tools, {INSTALL}"
    return "the models that are left are too large or too hard"


def _plan(problem: Problem, fabric: Fabric, draft: Draft, how: str) -> CircuitPlan:
    """The draft as a plan, a step a round."""
    c = problem.collective
    apart = 1 if c.keeps_apart else None
    steps = []
    for sends in draft:
        piece, src, dst, adds, wavelength = (np.array(column) for column in list(zip(*sends, strict=True))[:5])
        op = np.where(adds, Op.REDUCE, Op.MOVE if c.keeps_apart else Op.COPY)
        transfers = Transfers.of(src, dst, problem.chunk[piece], 1, op, apart)
        hops = np.array([edge for send in sends for edge in send.path], np.int32)
        ends = np.cumsum([0, *(len(send.path) for send in sends)])
        at, to = fabric.machine_nodes(src), fabric.machine_nodes(dst)
        circuits = Circuits.of(np.arange(len(sends)), at, to, 0, wavelength, 1, (hops, ends))
        steps.append((transfers, circuits))
    schedule = Schedule("synthesized", c, len(steps), lambda i: steps[i][0], parameters={"how": how})
    return CircuitPlan(fabric, schedule, lambda i: (steps[i][1],))
