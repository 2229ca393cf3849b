"""The fastest plan for every message size, each algorithm compiled and judged at most once.

A plan's time for any size follows from one look at its steps, and a bound tells which algorithms need no look; so every
message size has its own fastest algorithm. Plans are judged when somebody asks for the verdict.
"""

from __future__ import annotations

from collections.abc import Callable

from opticcl.candidates import Candidates
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabric import FABRICS
from opticcl.ir import CircuitPlan, Fabric, Schedule, Verdict
from opticcl.memory import Memory
from opticcl.registry import canonical, parse_call, write_call
from opticcl.schedule import ALGORITHMS, all_variants, reason_declined
from opticcl.simulate import Assumptions, assumptions
from opticcl.verify.judge import Judge

__all__ = ["Choice", "Planner"]

FOLLOWED_UP_TO = 1 << 18  # (rank, chunk) pairs of a plan of which every chunk is followed: so many plans are judged
MANY_NODES, FEW_CLASSES = 8192, 10  # above so many nodes auto looks only at schedules of so few unlike steps


class Choice:
    """All algorithms that do a collective on a fabric; the fastest for each size."""

    def __init__(
        self,
        where: Fabric,
        wanted: Request,
        algorithm: str,
        assumed: Assumptions,
        resolution_s: float,
        judge: Judge,
        memory: Memory,
    ) -> None:
        self.fabric, self.collective, self.declined = where, wanted.name, ""
        self._resolution_s, self._judge = resolution_s, judge
        named = canonical(algorithm) != "auto"
        if named and (reason := reason_declined(algorithm, wanted, where)) is not None:
            self.declined, named = reason, False

        def worth_a_look(schedules: list[Schedule]) -> list[Schedule]:
            if named or where.num_nodes <= MANY_NODES:
                return schedules
            return _few_unlike_steps(schedules, FABRICS.get(where.name).own)

        algorithms = (algorithm,) if named else all_variants(wanted, where)
        self._candidates = Candidates(where, wanted, algorithms, assumed, worth_a_look, memory)
        self._best: dict[int, tuple[float, CircuitPlan]] = {}
        self._verdicts: dict[int, Verdict] = {}

    def best(self, size_bytes: int) -> tuple[float, CircuitPlan]:
        """Time of the fastest [s], and its plan.

        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        if size_bytes not in self._best:
            found = self._candidates.fastest([size_bytes], resolution_s=self._resolution_s)
            if found is None:
                what, where = self.collective, self.fabric
                raise UnsupportedError(f"no algorithm does {what} on {where.name} with {where.num_nodes} nodes")
            self._best[size_bytes] = found.profile.timeline(size_bytes).total_s, found.profile.plan
        return self._best[size_bytes]

    def verdict(self, plan: CircuitPlan) -> Verdict:
        """What the judge says of one of the plans."""
        if id(plan) not in self._verdicts:
            self._verdicts[id(plan)] = self._judge(plan)
        return self._verdicts[id(plan)]


def _few_unlike_steps(schedules: list[Schedule], own: str) -> list[Schedule]:
    """What is looked at on very many nodes, where a step is a hundred thousand transfers: the algorithm of the fabric's
    paper, and those of few unlike steps; all of them if there are none such."""
    kept = [s for s in schedules if s.name == own or len(s.step_classes()) <= FEW_CLASSES]
    return kept or schedules


class Planner:
    """Plans for any fabric, collective and size, kept for the next who asks.

    Args:
        algorithm: a name for whatever it can do, and the fastest for the rest; auto: the fastest for everything.
        assumed: what times rest on.
        resolution_s: what a message may take longer than it must: no faster plan is looked for that could save less; with 0
            every message has the very fastest [s].
        progress: told what is being done.
    """

    def __init__(
        self,
        algorithm: str = "auto",
        assumed: Assumptions | None = None,
        *,
        resolution_s: float = 0.0,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._resolution_s = resolution_s
        self.algorithm, self.assumed, self.progress = algorithm, assumed or assumptions(), progress
        self.name = parse_call(algorithm)[0]
        if self.name != "auto":
            ALGORITHMS.get(self.name)  # an unknown name is refused here, and not by each fabric
        self._judge, self._memory = Judge(FOLLOWED_UP_TO), Memory()
        self._choices: dict[tuple[str, tuple[int, ...], Request], Choice] = {}

    def choice(self, where: Fabric, wanted: Request) -> Choice:
        """What there is to choose from."""
        parameters = {k: v for k, v in where.parameters.items() if v is not None}
        ranks = () if where.nodes is None else tuple(where.nodes.tolist())
        key = write_call(where.name, parameters), ranks, wanted
        if key not in self._choices:
            self.progress(f"look for the fastest {wanted.name} of {where.num_nodes:,} nodes on {where.name}")
            self._choices[key] = Choice(
                where, wanted, self.algorithm, self.assumed, self._resolution_s, self._judge, self._memory
            )
        return self._choices[key]
