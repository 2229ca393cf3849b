"""Best-first search for the fastest algorithm of a collective on a fabric, the same for every verb.

Every candidate has a lower bound on its time. The search refines the candidate with the smallest bound, one run of equal
steps at a time: first the bound of the run, then, once all runs have bounds, its circuits and exact cost. A run without a
bound counts with the latency of the steps that are known to send something. The search ends when the candidate with
the smallest bound is complete, since no other can be faster. Bounds and costs hold for every message size, so they are kept
between sizes.

Source: Hart, Nilsson and Raphael 1968.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from heapq import heapify, heappop, heappush
from itertools import islice
from math import inf, nextafter
from time import perf_counter
from typing import Any

import numpy as np

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, TooLargeError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, Timeline, Verdict, no_progress
from opticcl.ir.limits import limit
from opticcl.ir.step_cache import StepCache
from opticcl.plans.candidate import Candidate, Known
from opticcl.plans.direct_parts import algorithm_in_parts
from opticcl.plans.light import DEFAULT_RULE, Light, LightRule, light_differs
from opticcl.plans.shift_laws import held_algorithm
from opticcl.plans.times import timeline_of
from opticcl.registry import canonical, parse_call
from opticcl.schedule import ALGORITHMS, generate, reason_declined, search_space
from opticcl.simulate import engine_options, least_transfer_s
from opticcl.verify.judge import Judge

__all__ = ["LAWS", "TIE", "Search", "Searches", "at_any_rate"]

LAWS = (held_algorithm, algorithm_in_parts)
"""Functions (fabric, wanted, size, assumptions) -> variant of an algorithm that suits the size, or None."""

MOST_STEP_BYTES = limit("search.MOST_STEP_BYTES")

TIE = 1e-9
"""Relative difference below which two times are equal: they are sums of the same terms in another order."""


class Search:
    """The fastest algorithm of a collective on a fabric, for one message or several that follow each other.

    Candidates are the registered algorithms with their variants, and what `LAWS` propose for the messages: links to hold on
    optical circuit switches, and where an all_to_all on a RAMP is cut.

    Args:
        fabric: to search on.
        wanted: collective and root.
        assumed: time assumptions.
        algorithms: names with parameters, as `generate` takes them, without those of `LAWS`; those that decline are skipped.
            None: all.
        rule: the light that a plan must have to be chosen.
        judge: that plans must not be too large for, shared with other searches; None: a new one.
        cache: shared with other searches; None: a new one.
        also: other assumptions that the fastest is wanted under.
        engine: that `timed` computes times with; the fastest is found by the closed form in any case.
        resolution_s: tolerance: the fastest may be slower than any other by at most this [s].
        declined: why the algorithm that a caller would prefer is not searched; "" if it is.

    Attributes:
        finished: whether the last search ended before its deadline.
    """

    def __init__(
        self,
        fabric: Fabric,
        wanted: Request,
        assumed: Assumptions,
        algorithms: Iterable[str] | None = None,
        *,
        rule: LightRule = DEFAULT_RULE,
        judge: Judge | None = None,
        cache: StepCache | None = None,
        also: Sequence[Assumptions] = (),
        engine: str = "closed_form",
        resolution_s: float = 0.0,
        declined: str = "",
    ) -> None:
        self.fabric, self.wanted, self.assumed, self.declined = fabric, wanted, assumed, declined
        self._rule, self._judge, self._cache, self._also = rule, judge or Judge(), cache or StepCache(), also
        self._engine, self._resolution_s = engine, resolution_s
        self._laws = LAWS if algorithms is None else ()
        self._failures: dict[str, str] = {}
        algorithms, self._not_tried = search_space(wanted, fabric) if algorithms is None else (algorithms, [])
        self._candidates: list[Candidate] = []
        self._evaluated: Candidate | None
        for algorithm in algorithms:
            try:
                schedule = generate(algorithm, wanted, fabric)
            except TooLargeError as error:
                self._not_tried.append(f"{algorithm}: {error}")
            except UnsupportedError:
                continue
            except AlgorithmError as error:
                self._failures.setdefault(algorithm, str(error))
            else:
                self._candidates.append(Candidate(fabric, schedule, assumed, self._cache, also))
        self._num_registered, self._at_first = len(self._candidates), (dict(self._failures), tuple(self._not_tried))
        self._proposed: set[str] = set()
        self._hunts, self._evaluated = False, None
        self._differs = not rule.ignored and light_differs(fabric, rule.optics)
        self._refusals: dict[int, str] = {}
        self._timed: dict[int, tuple[Timeline, Candidate]] = {}
        self.finished = True

    def under(self, assumed: Assumptions, where: Fabric | None = None) -> Search:
        """The same candidates and circuits under other assumptions.

        Args:
            assumed: time assumptions.
            where: the same fabric at another node rate, which laws propose other candidates for; None: as it is.
        """
        made = copy(self)
        made.assumed, made._timed, made.finished = assumed, {}, True
        made._evaluated = None
        if where is None:
            made._proposed, made._refusals = set(self._proposed), dict(self._refusals)
            made._failures, made._not_tried = dict(self._failures), list(self._not_tried)
            made._candidates = [candidate.under(assumed) for candidate in self._candidates]
        else:
            registered = self._candidates[: self._num_registered]
            made.fabric, made._proposed, made._refusals = where, set(), {}
            made._failures, made._not_tried = dict(self._at_first[0]), list(self._at_first[1])
            made._candidates = [candidate.under(assumed, where) for candidate in registered]
        return made

    def timed(self, size_bytes: int) -> tuple[Timeline, Candidate]:
        """The fastest for a message, with its times by the engine; kept.

        Args: size_bytes: message of every rank [bytes].
        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        if size_bytes not in self._timed:
            fastest = self.fastest([size_bytes])
            if fastest is None:
                raise self.refusal()
            self._timed[size_bytes] = timeline_of(fastest.profile, size_bytes, self._engine), fastest
        return self._timed[size_bytes]

    def verdict(self, candidate: Candidate) -> Verdict:
        """Verdict on the plan of a complete candidate."""
        return candidate.verdict(self._judge)

    def light(self, candidate: Candidate) -> Light:
        """Light of a complete candidate by the rule of the search."""
        return candidate.light(self._rule)

    def fastest(
        self,
        sizes: Sequence[int],
        *,
        algorithm: str | None = None,
        without: Collection[str] = (),
        below_s: float = inf,
        deadline_s: float = inf,
        accepts: Callable[[Candidate], bool] = lambda candidate: True,
    ) -> Candidate | None:
        """The candidate with the least time for these messages one after the other whose light closes and that can be judged.

        Where there is none of these, the one with the least time; None if the fabric can carry none.

        Args:
            sizes: messages of every rank [bytes].
            algorithm: name of the only algorithm to consider; None: all.
            without: names of algorithms that are not considered.
            below_s: only candidates faster than that; None if there are none [s].
            deadline_s: `time.perf_counter` after which the best candidate so far is returned, once there is one, or where
                `below_s` is finite; then `finished` is False [s].
            accepts: whether a complete candidate may be returned at all.
        """
        others: list[Candidate] = []
        for candidate in self.in_order(
            sizes,
            algorithm=algorithm,
            without=without,
            below_s=below_s,
            deadline_s=deadline_s,
            resolution_s=self._resolution_s,
        ):
            if not accepts(candidate):
                continue
            closes = self._closes(candidate)
            if closes and self._judged(candidate):
                return candidate
            others.append(candidate)
            if not closes and not self._differs and self._judged(candidate):
                break
            self._hunts = not closes  # candidates with a dark step are evaluated no further
        return next((one for one in others if self._judged(one)), others[0] if others else None)

    def in_order(
        self,
        sizes: Sequence[int],
        *,
        algorithm: str | None = None,
        without: Collection[str] = (),
        below_s: float = inf,
        deadline_s: float = inf,
        resolution_s: float = 0.0,
    ) -> Iterator[Candidate]:
        """Candidates in ascending order of their time, each evaluated no further than its place in the order needs.

        Where times are equal, the one that is registered first comes first, whatever was evaluated before.

        Args:
            sizes, algorithm, without, below_s, deadline_s: as of `fastest`.
            resolution_s: by which a candidate may be slower than one that comes later [s].
        """
        self.finished, self._hunts = True, False
        if algorithm is None:
            self._propose(sizes, without)
        moving_s = self._moving_s(sizes)
        known = {
            i: candidate.known(sizes)
            for i, candidate in enumerate(self._candidates)
            if i not in self._refusals
            and candidate.schedule.name not in without
            and algorithm in (None, candidate.schedule.name)
        }
        complete = [(known[i].total_s, i) for i in known if self._candidates[i].complete]
        queue = [(self._bound_s(i, known[i], moving_s), i) for i in known if not self._candidates[i].complete]
        heapify(complete)
        heapify(queue)
        some = False
        while (complete and complete[0][0] < below_s) or (queue and queue[0][0] < below_s - resolution_s):
            late = (complete or some or below_s < inf) and perf_counter() > deadline_s
            if complete and (late or not queue or complete[0][0] * (1 + TIE) < queue[0][0] + resolution_s):
                some, self.finished = True, self.finished and not late
                equal = [heappop(complete)]
                while complete and complete[0][0] <= equal[0][0] * (1 + TIE) and complete[0][0] < below_s:
                    equal.append(heappop(complete))
                first = min(equal, key=lambda one: self._place(one[1]))
                equal.remove(first)
                for other in equal:
                    heappush(complete, other)
                yield self._candidates[first[1]]
                continue
            if late:
                self.finished = False
                return
            _, i = heappop(queue)
            candidate = self._candidates[i]
            if candidate.too_long and (queue or complete or some or below_s < inf):
                self._refusals[i] = candidate.too_long
                self._not_tried.append(candidate.too_long)
                continue
            more = self._refined(i, sizes)
            if more is None:
                continue
            known[i] = candidate.known(sizes) if candidate.complete else known[i].plus(more)
            if self._hunts and candidate.is_dark(self._rule):
                continue
            if candidate.complete:
                heappush(complete, (known[i].total_s, i))
            else:
                heappush(queue, (self._bound_s(i, known[i], moving_s), i))

    def _place(self, i: int) -> tuple[int, str]:
        """Place among candidates of equal times: registered ones in their order, then those made for a size by name."""
        return (i, "") if i < self._num_registered else (self._num_registered, self._candidates[i].schedule.name)

    def _moving_s(self, sizes: Sequence[int]) -> float:
        """Least time in which data moves in any candidate, for these messages one after the other [s]."""
        if not self._candidates:
            return 0.0
        collective = self._candidates[0].schedule.collective
        return sum(least_transfer_s(collective, self.fabric, size, self.assumed) for size in sizes)

    def _bound_s(self, i: int, known: Known, moving_s: float) -> float:
        """Lower bound on the time of a candidate [s].

        Args:
            i: number of the candidate.
            known: of it.
            moving_s: for which data moves at least [s].
        """
        return known.total_s if self._candidates[i].complete else known.at_least(moving_s)

    def near(self, size_bytes: int, limit_s: float, most: int) -> list[Candidate]:
        """Candidates that `fastest` may return and that take no longer than a limit, fastest first.

        Args:
            size_bytes: message of every rank [bytes].
            limit_s: of their times [s].
            most: of them [count].
        """
        in_order = self.in_order([size_bytes], below_s=nextafter(limit_s, inf))
        return list(islice(filter(self.suits, in_order), most))

    def suits(self, candidate: Candidate) -> bool:
        """Whether the rule allows the light of a complete candidate, and the verifier can judge it."""
        return self._closes(candidate) and self._judged(candidate)

    def _closes(self, candidate: Candidate) -> bool:
        """Whether the rule allows the light of a complete candidate."""
        return self._rule.allows(candidate.light(self._rule))

    def _judged(self, candidate: Candidate) -> bool:
        """Whether the verifier can judge a complete candidate."""
        return self._judge.can_judge(candidate.profile.plan)

    def _propose(self, sizes: Sequence[int], without: Collection[str]) -> None:
        """Add the variants that laws propose for these messages, unless they are known.

        Args:
            sizes: messages one after the other [bytes].
            without: names of algorithms that are not considered.
        """
        mean, where = sum(sizes) / max(1, len(sizes)), self.fabric.equivalent
        if where is None:  # laws are those of whole machines
            return
        for law in self._laws:
            try:
                name = law(where, self.wanted, mean, self.assumed)
            except TooLargeError as error:
                self._not_tried.append(str(error))
                continue
            if name is None or name in self._proposed or parse_call(name)[0] in without:
                continue
            self._proposed.add(name)
            schedule = generate(name, self.wanted, self.fabric)
            self._candidates.append(Candidate(self.fabric, schedule, self.assumed, self._cache, self._also))

    def release(self) -> None:
        """Forget steps and circuits that were evaluated; plans that `Candidate.plan` returned do not need them."""
        self._cache.clear()

    def _refined(self, i: int, sizes: Sequence[int]) -> Known | None:
        """What the next run of steps of a candidate adds to what is known; None where it is refused, which is kept, or dark.

        Args:
            i: number of the candidate.
            sizes: messages one after the other [bytes].
        """
        candidate, last = self._candidates[i], self._evaluated
        if last is not None and last is not candidate:
            last.release()
        self._evaluated = candidate
        try:
            return None if self._hunts and candidate.cannot_close(self._rule) else candidate.refine(sizes)
        except TooLargeError as error:
            self._refusals[i] = str(error)
            self._not_tried.append(str(error))
        except UnsupportedError as error:
            self._refusals[i] = str(error)
        except AlgorithmError as error:
            self._refusals[i] = self._failures[candidate.schedule.name] = str(error)
        return None

    @property
    def failures(self) -> dict[str, str]:
        """Algorithms that raised an exception so far, with the error."""
        return dict(self._failures)

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What was left out so far since evaluating it takes long or much memory, a line each; some of it may be faster."""
        return tuple(dict.fromkeys(self._not_tried))

    def refusal(self) -> UnsupportedError:
        """That there is no plan, with the reason."""
        nodes, where = self.fabric.num_nodes, self.fabric.name
        return UnsupportedError(f"no algorithm does {self.wanted.name} on {where} with {nodes} nodes{self.why_none()}")

    def why_none(self) -> str:
        """Reason why `fastest` returned None: "; " and the first refusal of a circuit rule, or two nodes without a circuit
        between them; "" if it is neither."""
        for reason in (*(self._refusals[i] for i in sorted(self._refusals)), *self._failures.values()):
            return f"; {reason}"
        fabric = self.fabric
        ranks = np.arange(1, fabric.num_nodes)
        first = np.zeros_like(ranks)
        for src, dst in ((first, ranks), (ranks, first)):
            apart = np.flatnonzero(~fabric.linked(src, dst))
            if len(apart):
                ends = fabric.machine_nodes(np.array([src[apart[0]], dst[apart[0]]]))
                sender, receiver = (fabric.coordinates(int(node)) for node in ends)
                return f"; no circuit leads from node {sender} to node {receiver}; give a job of nodes that are joined"
        return ""


def at_any_rate(fabric: Fabric) -> tuple[Any, ...]:
    """What a machine, or a job on one, is apart from the rate of its nodes.

    Those that are equal in it have the same schedules, circuits, latencies and light.
    """
    rate = fabric.machine.rate_parameter
    parameters = tuple((name, value) for name, value in fabric.parameters.items() if name != rate)
    ranks = () if fabric.node_of_rank is None else tuple(fabric.node_of_rank.tolist())
    return fabric.name, parameters, ranks, fabric.num_members, fabric.share


class Searches:
    """Searches of any collective on any fabric under the same assumptions; they are kept, and share steps and verdicts.

    Args:
        algorithm: used wherever it can; the fastest for everything else. "auto": the fastest for everything.
        assumptions: named set of time assumptions, or a custom set.
        engine, resolution_s, rule: as of `Search`.
        progress: called with a line of text before each search.
    """

    def __init__(
        self,
        algorithm: str = "auto",
        assumptions: str | Assumptions = DEFAULT_SET,
        *,
        engine: str = "closed_form",
        resolution_s: float = 0.0,
        rule: LightRule = DEFAULT_RULE,
        progress: ProgressCallback = no_progress,
    ) -> None:
        engine_options(engine, {})  # an unknown engine is refused here, not by each fabric
        self._engine, self._resolution_s, self.rule = engine, resolution_s, rule
        self.algorithm, self.assumed, self.progress = algorithm, assumptions_of(assumptions), progress
        self.name = parse_call(algorithm)[0]
        if self.name != "auto":
            ALGORITHMS.get(self.name)  # an unknown name is refused here, not by each fabric
        self._judge, self._cache = Judge(), StepCache(MOST_STEP_BYTES)
        self._known: dict[tuple[tuple[Any, ...], float], Search] = {}
        self._at_a_rate: dict[
            tuple[Any, ...], Search
        ] = {}  # the first of each machine and collective, whatever its rate
        self._shared: Searches | None = None

    @property
    def tolerance(self) -> float:
        """Part of the bytes of a transfer that the engine may leave out."""
        return float(getattr(engine_options(self._engine, {})[1], "tolerance", 0.0))

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What the searches left out so far, each line once."""
        return tuple(dict.fromkeys(line for search in self._known.values() for line in search.not_tried))

    def under(self, assumed: Assumptions) -> Searches:
        """The same under other assumptions; both evaluate each schedule and its circuits once."""
        made = copy(self)
        made.assumed, made._known, made._at_a_rate, made._shared = assumed, {}, {}, self
        return made

    def forget(self) -> None:
        """Release candidates of all fabrics so far, their circuits and the steps that they do not share; verdicts on their data
        are kept."""
        self._known.clear()
        self._at_a_rate.clear()
        self._cache.clear_unshared()

    def of(self, where: Fabric, wanted: Request) -> Search:
        """The search of a collective on a fabric.

        Args:
            where: the fabric.
            wanted: collective and root.
        """
        machine = *at_any_rate(where), wanted
        key = machine, where.node_rate_bits_per_s
        if key not in self._known:
            if self._shared is not None:
                made = self._shared.of(where, wanted).under(self.assumed)
            elif machine in self._at_a_rate:
                made = self._at_a_rate[machine].under(self.assumed, where)
            else:
                made = self._at_a_rate[machine] = self._new(where, wanted)
            self._known[key] = made
        return self._known[key]

    def _new(self, where: Fabric, wanted: Request) -> Search:
        self.progress(f"search the fastest {wanted.name} of {where.num_nodes:,} nodes on {where.name}")
        named = canonical(self.algorithm) != "auto"
        declined = (reason_declined(self.algorithm, wanted, where) if named else None) or ""
        return Search(
            where, wanted, self.assumed, (self.algorithm,) if named and not declined else None, rule=self.rule,
            judge=self._judge, cache=self._cache, engine=self._engine, resolution_s=self._resolution_s, declined=declined,
        )  # fmt: skip
