"""Training time: the task graph of a job simulated on each machine, fastest first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Literal

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import Fabric, ProgressCallback, no_progress
from opticcl.ir.task_graph import TaskGraph, median_step
from opticcl.ir.verdict import VERDICTS, VERIFIED, Judgement
from opticcl.plans.comparison import reason_unranked
from opticcl.plans.equal import Equal
from opticcl.plans.light import DEFAULT_RULE, Light, LightRule, light_rule
from opticcl.plans.machines import ExcludedFabric, reason_left_out, search_weight
from opticcl.plans.ranks import beside
from opticcl.plans.search import TIE, Searches
from opticcl.plans.sentences import as_built_sentence, ground, ranking_sentence
from opticcl.processes import each
from opticcl.registry import as_text, convert_value, one_or_more, parse_call, whole_number, write_call
from opticcl.training.communication import CommunicationTimes, PlanUse, moved_bytes
from opticcl.training.gain import Gain, is_trace
from opticcl.training.iteration import COMPUTE, Iteration, Runtime, simulate_iteration
from opticcl.training.partition import partition
from opticcl.training.partition.layout import layouts
from opticcl.training.rooflines import note_untimed
from opticcl.training.runtime import num_streams
from opticcl.training.target import Target
from opticcl.training.together import Together, plan_together, why_not
from opticcl.units import counted, format_seconds, in_columns

__all__ = ["TrainingResult", "TrainingRow", "resolution_of", "train"]

RESOLUTION = 1e-3
"""Share of the computation by which all messages together may exceed the time of their fastest plans."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A job on one machine.

    Args:
        machine: the fabric.
        iteration: simulated timeline; of several steps that of the job, the one with the median computation.
        plans: verified plans that carry its messages, in descending order of time.
        remarks: deviations from the requested algorithm, and algorithms that raised an exception.
        steps: timelines of all steps, in order; empty if there is one.
        steps_plans: plans that carry the messages of all steps; empty if there is one.
        beside: another set of assumptions, and the time of an iteration under it [s].
        together: the iteration with all its messages planned together, if requested.
        rule: the light that plans must have for a rank.
        not_tried: what the searches left out, a line each.
        built: the machine as built, where it is ranked at another rate.
        built_s: time of an iteration on that; None: it cannot carry the job, or was not evaluated [s].
        is_reference: whether the machine stands beside others as what cannot be built.
        layouts: layouts of the ranks that were tried, with the time of an iteration [s]; None where it cannot be carried.
    """

    machine: Fabric
    iteration: Iteration
    plans: tuple[PlanUse, ...]
    remarks: tuple[str, ...] = ()
    steps: tuple[Iteration, ...] = ()
    steps_plans: tuple[PlanUse, ...] = ()
    beside: tuple[str, float] | None = None
    together: Together | None = None
    rule: LightRule = DEFAULT_RULE
    not_tried: tuple[str, ...] = ()
    built: Fabric | None = None
    built_s: float | None = None
    is_reference: bool = False
    layouts: tuple[tuple[str, float | None], ...] = ()

    def __repr__(self) -> str:
        took, waits = format_seconds(self.iteration.total_s), _waits(self)
        return f"<TrainingRow {self.iteration.job.name} on {self.machine.name}: {took} per iteration, {waits} exposed>"

    @property
    def verified(self) -> bool:
        """Whether every plan passed verification."""
        return self.verdict == "right"

    @property
    def _all_plans(self) -> tuple[PlanUse, ...]:
        return *self.plans, *self.steps_plans, *(self.together.plans if self.together else ())

    @property
    def verdict(self) -> Judgement:
        """The worst verdict on a plan: wrong, not judged, right."""
        verdicts = {use.verdict.verdict for use in self._all_plans}
        return "wrong" if "wrong" in verdicts else "not_judged" if "not_judged" in verdicts else "right"

    @property
    def light(self) -> Light:
        """Light of the plan with the least margin."""
        known = [use.light for use in self._all_plans if use.light.margin_db is not None]
        return min(known, key=lambda light: light.margin_db or 0.0, default=Light(None, "", "plan"))

    @property
    def ranked(self) -> bool:
        """Whether it has a rank: every plan is right, its light closes or is ignored, and the machine is no reference."""
        return self.verified and all(self.rule.allows(use.light) for use in self._all_plans) and not self.is_reference

    @property
    def no_rank(self) -> str:
        """Why it has no rank; "" if it has one."""
        return "" if self.ranked else reason_unranked(self.verdict, self.light, self.is_reference)

    @property
    def rate_factor(self) -> float:
        """Rate of a node over that of the machine as built."""
        return self.machine.node_rate_bits_per_s / (self.built or self.machine).node_rate_bits_per_s

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Algorithms of the plans, without repetition."""
        return tuple(dict.fromkeys(use.plan.algorithm for use in self.plans))

    @property
    def lower_bound_s(self) -> float:
        """Sum of the lower bounds of its messages, each on the nodes of its group [s]."""
        return sum(use.lower_bound_s for use in self.plans)

    @property
    def gap(self) -> float | None:
        """Time of all messages, each alone, over their lower bound; None where that is 0."""
        return sum(use.total_s for use in self.plans) / self.lower_bound_s if self.lower_bound_s else None

    @property
    def communication_share(self) -> float | None:
        """Share of the iteration in which the device waits for messages; None if no computation has a time."""
        total = self.iteration.total_s
        return self.iteration.exposed_s / total if total and self.iteration.job.compute_s else None

    @property
    def model_utilisation(self) -> float | None:
        """Model FLOPs utilisation (MFU): share of the peak rate that the model's operations use; None if unknown."""
        job, total_s = self.iteration.job, self.iteration.total_s
        return job.model_operations / (total_s * job.peak_per_s) if job.peak_per_s and total_s else None

    @property
    def bandwidth_utilisation(self) -> float:
        """Share of a node's rate in use while there is communication: minimum bytes to move over possible bytes."""
        job, moved = self.iteration.job, 0.0
        for span in self.iteration.spans_of(self.iteration.device):
            if span.queue != COMPUTE:
                task = job.tasks[span.tasks[0]]
                moved += moved_bytes(task.collective, len(job.groups[task.group].ranks), span.size_bytes)
        busy_s = (
            self.iteration.communication_s + self.iteration.duplex_s
        )  # of both directions, where transfers pass each other
        could = busy_s * self.machine.node_rate_bits_per_s / 8
        return moved / could if could else 0.0

    def record(self) -> dict[str, Any]:
        """The row as plain values."""
        iteration, machine = self.iteration, self.machine
        return {
            "fabric": machine.name,
            "num_nodes": machine.num_nodes,
            "node_rate_bits_per_s": machine.node_rate_bits_per_s,
            "algorithms": list(self.algorithms),
            "verdict": self.verdict,
            "verified": VERIFIED[self.verdict],
            **self.light.record(),
            "iteration_s": iteration.total_s,
            "no_rank": self.no_rank or None,
            "built_node_rate_bits_per_s": (self.built or machine).node_rate_bits_per_s,
            "rate_factor": self.rate_factor,
            "as_built_s": self.built_s,
            **({f"{self.beside[0]}_s": self.beside[1]} if self.beside else {}),
            "compute_s": iteration.compute_s,
            "communication_s": iteration.communication_s,
            "exposed_s": iteration.exposed_s,
            "bubble_s": iteration.bubble_s,
            "communication_share": self.communication_share,
            "utilisation": iteration.utilisation,
            "model_utilisation": self.model_utilisation,
            "bandwidth_utilisation": self.bandwidth_utilisation,
            "messages": iteration.num_messages,
            "lower_bound_s": self.lower_bound_s,
            "gap": self.gap,
            "layout": iteration.job.layout or None,
            "layouts": [{"layout": layout, "iteration_s": took_s} for layout, took_s in self.layouts],
            "steps": [
                {"step": step.job.step, "iteration_s": step.total_s, "exposed_s": step.exposed_s} for step in self.steps
            ],
            "plans": [use.record() for use in self.plans],
            "not_tried": list(self.not_tried),
            **({"together": self.together.record()} if self.together else {}),
            "specification": write_call(machine.name, {k: v for k, v in machine.parameters.items() if v is not None}),
        }


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A job on several machines: those with a rank, fastest first, then the others.

    Args:
        job: task graph of the job.
        runtime: fusion, overlap and order.
        assumed: time assumptions of the collectives.
        groups: "scaled" or "machine", see `opticcl.training.communication`.
        rows: those with a rank, fastest first, then those whose light does not close or with a plan that is not right.
        left_out: fabrics that cannot carry the job.
        iterations_per_epoch: 0 if unknown [count].
        iterations: of the whole training; 0 if unknown [count].
        recorded_on: the job on a model of the network on which it was recorded; None if that is not given.
        compute_scale: speed of the devices of the rows relative to those of the job.
        target: what a target loss chose; None if the job was given.
        equal: what the nodes of the machines have in common; None: they are as given.
        gain: what the fabrics save of the recorded step; None for a model.
    """

    job: TaskGraph
    runtime: Runtime
    assumed: Assumptions
    groups: str
    rows: tuple[TrainingRow, ...]
    left_out: tuple[ExcludedFabric, ...]
    iterations_per_epoch: int = 0
    iterations: int = 0
    recorded_on: TrainingRow | None = None
    compute_scale: float = 1.0
    target: Target | None = None
    equal: Equal | None = None
    gain: Gain | None = None

    def __repr__(self) -> str:
        first, fabrics = self.rows[0], counted(len(self.rows), "fabric")
        took = f"{format_seconds(first.iteration.total_s)} per iteration"
        return f"<TrainingResult {self.job.name} on {fabrics}: fastest {first.machine.name}, {took}>"

    def __str__(self) -> str:
        return in_columns([("fabric", "iteration", "exposed", "algorithms", "verified"), *map(_cells, self.rows)])

    @property
    def answer(self) -> str:
        """How much of the recorded step a network can save, in a sentence; "" for a model."""
        return self.gain.sentence(self.rows[0].machine, self.rows[0].iteration) if self.gain else ""

    def epoch_s(self, row: TrainingRow) -> float | None:
        """Time of an epoch [s]; None if its number of iterations is unknown."""
        return row.iteration.total_s * self.iterations_per_epoch if self.iterations_per_epoch else None

    def training_s(self, row: TrainingRow) -> float | None:
        """Time of the whole training [s]; None if its number of iterations is unknown."""
        return row.iteration.total_s * self.iterations if self.iterations else None

    @property
    def headline(self) -> str:
        """What a network saves of the recorded step; of a model which machine is the fastest, and which one is as built."""
        if self.answer:
            return self.answer
        ranked = [row for row in self.rows if row.ranked]
        if not ranked:
            return f"No fabric has a rank: {self.rows[0].machine.name}: {self.rows[0].no_rank}."
        names, rates = [row.machine.name for row in ranked], [row.machine.node_rate_bits_per_s for row in ranked]
        first = ranking_sentence(
            ground(self.equal, rates), names, [row.iteration.total_s for row in ranked], names[0], " an iteration"
        )
        built = [(row.machine.name, row.built, row.built_s) for row in ranked if row.built and row.built_s is not None]
        return " ".join(filter(None, (first, as_built_sentence(built))))

    def record(self) -> dict[str, Any]:
        """The job and the rows as plain values."""
        about = self.job.record() | {
            "iterations_per_epoch": self.iterations_per_epoch or None,
            "iterations": self.iterations or None,
            "compute_scale": self.compute_scale,
            "streams": num_streams(self.job, self.runtime),
        }
        rows = [row.record() | {"epoch_s": self.epoch_s(row), "training_s": self.training_s(row)} for row in self.rows]
        values: dict[str, Any] = {
            "headline": self.headline,
            "equal": self.equal and self.equal.record(),
            "job": about,
            "rows": rows,
            "left_out": [one.record() for one in self.left_out],
        }
        if self.gain is not None:
            values["rows"] = [one | self.gain.of_row(row.iteration) for one, row in zip(rows, self.rows, strict=True)]
            values |= {"caveats": self.gain.caveats(), "as_recorded": self.gain.row()}
        if self.target is not None:
            fastest = {"fastest": self.rows[0].machine.name, "training_s": self.training_s(self.rows[0])}
            values = {"target": self.target.record() | fastest, **values}
        return values | ({"recorded": self._recorded()} if self.job.recorded else {})

    def _recorded(self) -> dict[str, Any]:
        """The recording, its replay, and the job on the model of the recorded network."""
        assert self.job.recorded is not None
        assert self.gain is not None
        again = self.gain.replayed
        assert again is not None
        return self.job.recorded.record() | {
            "step": self.job.step or None,
            "replay": {"iteration_s": again.total_s, "exposed_s": again.exposed_s},
            "on": self.recorded_on.record() if self.recorded_on else None,
        }


def _cells(row: TrainingRow) -> tuple[str, ...]:
    """A row as text: fabric, iteration, exposed share of it, algorithms, verified."""
    took = format_seconds(row.iteration.total_s)
    return row.machine.name, took, _waits(row), " ".join(row.algorithms), VERDICTS[row.verdict]


def _waits(row: TrainingRow) -> str:
    """Share of the iteration in which the device waits for messages, as text."""
    return "all" if row.communication_share is None else f"{row.communication_share:.1%}"


def train(
    job: TaskGraph | Sequence[TaskGraph] | str,
    machines: Fabric | str | Iterable[Fabric | str],
    *,
    nodes: int | None = None,
    algorithm: str = "auto",
    groups: Literal["scaled", "machine"] = "machine",
    layout: str | None = None,
    runtime: Runtime | None = None,
    stragglers: Mapping[int, float] | None = None,
    assumptions: str | Assumptions = DEFAULT_SET,
    engine: str = "closed_form",
    samples: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    optics: str | None = None,
    ignore_light: bool = False,
    planner: Searches | None = None,
    recorded_on: Fabric | str | None = None,
    compute_scale: float = 1.0,
    together: bool = False,
    equal: Equal | None = None,
    as_built: Sequence[Fabric] | None = None,
    jobs: int = 1,
    progress: ProgressCallback = no_progress,
) -> TrainingResult:
    """Simulate an iteration of a job on each machine.

    Args:
        job: of a model (`opticcl.training.partition`) or a trace (`opticcl.traces.load_job`); the steps of a trace
            (`opticcl.traces.load_steps`), of which the median is the iteration; or the name of a model, for `nodes` devices.
        machines: fabrics with at least as many nodes as the job has ranks, or one of them; text is built for `nodes` nodes.
        nodes: of machines and models given as text; None: as many as the job has ranks [count].
        algorithm: a name, used for each collective that it supports; "auto": the fastest for each message, within
            `RESOLUTION`.
        groups: see `opticcl.training.communication`.
        layout: which ranks sit where: the dimensions of a model's parallelism, that of neighbouring nodes first, such as
            "data,tensor"; "auto": on each machine the order with the least iteration; None: as `partition` numbers them.
        runtime: fusion, overlap and order; None: the defaults.
        stragglers: device -> factor on its computation time.
        assumptions: named set of time assumptions of the collectives, or a custom set; it chooses and charges.
        engine: that the collectives are simulated with; the fastest plans are found by the closed form in any case.
        samples: of an epoch [count].
        epochs: of the training.
        steps: iterations of the training, instead of epochs [count].
        optics: preset of the light budget that plans must close to be chosen, and machines to be ranked; None: the values of
            the paper where they suffice, else the typical ones.
        ignore_light: choose and rank without regard to light.
        planner: caches plans between calls; replaces `algorithm`, `assumptions`, `engine`, `optics` and `ignore_light`.
        recorded_on: model of the network on which a trace was recorded, to compare with the recording; text is built for
            the ranks of the job.
        compute_scale: speed of the devices relative to those of the job, for what-if questions; 2 is twice as fast. The
            replay and `recorded_on` keep the recorded speed.
        together: also plan the messages of the iteration together, so that circuits stand from one to the next and are
            changed during computation, see `opticcl.training.together`.
        equal: what the nodes of the machines have in common; None: they are as given.
        as_built: each machine as built, whose iteration stands beside; None: not evaluated.
        jobs: processes; the result is the same with any number of them [count].
        progress: called with a line about the current activity.
    Raises: ParameterError: contradictory arguments. UnsupportedError: no machine can carry the job.
    """
    groups = convert_value(groups, Literal["scaled", "machine"], "train: groups")
    if whole_number(jobs, "train: jobs") < 1:
        raise ParameterError(f"train: jobs={jobs} is less than one process; try 2")
    graphs = [note_untimed(graph) for graph in _task_graphs(job, nodes)]
    arrangements = [graphs] if layout is None else _arrangements(graphs, layout, groups)
    job = median_step(arrangements[0])
    size = job.num_ranks if nodes is None else nodes
    built = [given if isinstance(given, Fabric) else fabric_at_scale(given, size) for given in one_or_more(machines)]
    per_epoch, iterations = _iterations(job, samples, epochs, steps)
    algorithm = as_text(algorithm, "train: algorithm", "auto")
    resolution_s, known = resolution_of(job), planner
    rule = light_rule(built, optics, ignore_light)
    planner = known or Searches(
        algorithm, assumptions, engine=engine, resolution_s=resolution_s, rule=rule, progress=progress
    )
    other = beside(planner.assumed)
    also = None if known else planner.under(other.assumed)
    runtime = runtime or Runtime()
    if together and (planner.assumed.initial != "cold" or parse_call(engine)[0] != "closed_form"):
        wrong = f"engine={engine}" if planner.assumed.initial == "cold" else f"initial={planner.assumed.initial}"
        raise ParameterError(
            f"train: together plans by the closed form from a cold start and hands circuits over itself; leave {wrong} out"
        )

    def on_machine(i: int, progress: ProgressCallback) -> TrainingRow | ExcludedFabric:
        progress(f"simulate {job.name} on {built[i].name}")
        planner.progress = progress
        try:
            row = _placed_row(built[i], arrangements, planner, groups, runtime, stragglers, compute_scale, together)
            if also is not None:
                times = CommunicationTimes(built[i], also, groups=groups)
                again = simulate_iteration(row.iteration.job, times, runtime, stragglers, compute_scale=compute_scale)
                row = replace(row, beside=(other.name, again.total_s))
            return _with_built(row, None if as_built is None else as_built[i])
        except Exception as error:
            return ExcludedFabric(built[i].name, reason_left_out(built[i], error))
        finally:
            if also is not None:
                also.forget()
                planner.forget()

    def _with_built(row: TrainingRow, machine: Fabric | None) -> TrainingRow:
        """A row with the iteration of its machine as built."""
        is_reference = beside_others and row.machine.is_reference
        if machine is None or machine == row.machine:
            seconds = None if machine is None else row.iteration.total_s
            return replace(row, built=machine, built_s=seconds, is_reference=is_reference)
        try:
            times = CommunicationTimes(machine, planner, groups=groups)
            again = simulate_iteration(row.iteration.job, times, runtime, stragglers, compute_scale=compute_scale)
            seconds = again.total_s if times.all_suit() else None
        except (UnsupportedError, FabricError):
            seconds = None
        return replace(row, built=machine, built_s=seconds, is_reference=is_reference)

    beside_others = any(not machine.is_reference for machine in built)
    weights = list(map(search_weight, built))
    results = each(on_machine, len(built), jobs=jobs, progress=progress, weights=weights)
    rows = [one for one in results if isinstance(one, TrainingRow)]
    left_out = [one for one in results if isinstance(one, ExcludedFabric)]
    if not rows:
        raise UnsupportedError(left_out[0].reason if left_out else "train: no fabric is given")
    rows.sort(key=lambda row: (not row.ranked, not row.is_reference, row.iteration.total_s))
    model_row = None
    if recorded_on is not None:
        if job.recorded is None:
            raise ParameterError(f"train: recorded_on: {job.name} has no recorded times to compare with")
        given = recorded_on if isinstance(recorded_on, Fabric) else fabric_at_scale(recorded_on, job.num_ranks)
        model_row = _row(given, [job], planner, groups, runtime, stragglers)
    placed = rows[0].iteration.job
    altered = compute_scale != 1 or bool(stragglers)
    gain = Gain.of(placed, runtime.streams, altered=altered) if is_trace(placed) else None
    about = (per_epoch, iterations, model_row, compute_scale)
    return TrainingResult(
        placed, runtime, planner.assumed, groups, tuple(rows), tuple(left_out), *about, equal=equal, gain=gain
    )


def _arrangements(graphs: Sequence[TaskGraph], layout: str, groups: str) -> list[list[TaskGraph]]:
    """The job in each layout that is to be tried.

    Raises: ParameterError: a layout that changes nothing, or that is none of the job.
    """
    if groups == "scaled":
        raise ParameterError(
            f"train: layout={layout} changes nothing with groups=scaled, where a group has a fabric of its own; give "
            "groups=machine"
        )
    if len(graphs) > 1:
        raise ParameterError(f"train: layout={layout}: a job of several steps has its ranks as given; leave layout out")
    return [[one] for one in layouts(graphs[0], layout)]


def _placed_row(
    machine: Fabric,
    arrangements: Sequence[Sequence[TaskGraph]],
    planner: Searches,
    groups: Literal["scaled", "machine"],
    runtime: Runtime,
    stragglers: Mapping[int, float] | None,
    compute_scale: float,
    together: bool,
) -> TrainingRow:
    """A job on one machine in the layout with the least iteration; one with a rank is better, the first of equal ones is taken.

    Args:
        machine: the fabric.
        arrangements: the steps of the job in each layout.
        planner, groups, runtime, stragglers, compute_scale, together: as of `train`.
    Raises: UnsupportedError, FabricError: the machine cannot carry the job in any layout.
    """
    if len(arrangements) == 1:
        return _row(machine, arrangements[0], planner, groups, runtime, stragglers, compute_scale, together)
    rows = dict[str, TrainingRow]()
    refusal: UnsupportedError | FabricError | None = None
    for graphs in arrangements:
        try:
            rows[graphs[0].layout] = _row(machine, graphs, planner, groups, runtime, stragglers, compute_scale)
        except (UnsupportedError, FabricError) as error:
            refusal = error
    if refusal is not None and not rows:
        raise refusal
    can = [row for row in rows.values() if row.ranked] or list(rows.values())
    least_s = min(row.iteration.total_s for row in can)
    first = next(row for row in can if row.iteration.total_s <= least_s * (1 + TIE))
    if together:
        first = _row(machine, [first.iteration.job], planner, groups, runtime, stragglers, compute_scale, together)
    tried = ((name, rows.get(name)) for (one,) in arrangements for name in [one.layout])
    return replace(first, layouts=tuple((name, row.iteration.total_s if row else None) for name, row in tried))


def _row(
    machine: Fabric,
    graphs: Sequence[TaskGraph],
    planner: Searches,
    groups: Literal["scaled", "machine"],
    runtime: Runtime,
    stragglers: Mapping[int, float] | None,
    compute_scale: float = 1.0,
    together: bool = False,
) -> TrainingRow:
    """A job on one machine.

    Args:
        machine: the fabric.
        graphs: steps of the job, of which that with the median computation is the iteration.
        planner, groups, runtime, stragglers, compute_scale, together: as of `train`.
    Raises: UnsupportedError, FabricError: the machine cannot carry the job.
    """
    times = CommunicationTimes(machine, planner, groups=groups)

    def simulate(graph: TaskGraph) -> Iteration:
        return simulate_iteration(graph, times, runtime, stragglers, compute_scale=compute_scale)

    steps = [simulate(graph) for graph in graphs]
    remarks = times.declined()
    plans = times.used()
    if remarks and not any(use.plan.schedule.name == planner.name for use in plans):
        raise UnsupportedError(remarks[0])
    remarks += tuple(f"left out: {error}" for error in times.failures())
    row = TrainingRow(machine, steps[0], plans, remarks, rule=planner.rule)
    if len(graphs) > 1:
        job = median_step(graphs)
        row = TrainingRow(machine, simulate(job), times.used(), remarks, tuple(steps), plans, rule=planner.rule)
    row = replace(row, not_tried=times.not_tried())
    if not together:
        return row
    if why := why_not(row.iteration.job, runtime):
        return replace(row, remarks=(*row.remarks, why))
    planned = plan_together(row.iteration, times, runtime, stragglers, compute_scale=compute_scale)
    return replace(row, together=planned)


def _task_graphs(given: TaskGraph | Sequence[TaskGraph] | str, nodes: int | None) -> list[TaskGraph]:
    """Task graphs as they are, or that of the model of that name.

    Raises: ParameterError: neither, an empty sequence, or the number of devices is missing.
    """
    if isinstance(given, TaskGraph):
        return [given]
    if isinstance(given, (list, tuple)):
        graphs = [one for one in given if isinstance(one, TaskGraph)]
        if not graphs or len(graphs) < len(given):
            raise ParameterError("train: job: an empty list, or not of task graphs; give those of load_steps")
        return graphs
    model = as_text(given, "train: job", "vgg19")
    if Path(model).is_file():
        raise ParameterError(f"train: job: {model} is a file; give opticcl.traces.load_job({model!r})")
    if nodes is None:
        raise ParameterError(f"train: the number of devices of {model} is missing; give nodes=64, or a task graph")
    return [partition(model, nodes)]


def resolution_of(job: TaskGraph) -> float:
    """Time by which a message may exceed that of its fastest plan, so that all together stay below `RESOLUTION` [s]."""
    messages = sum(task.communicates for task in job.tasks)
    return RESOLUTION * job.compute_s / messages if messages else 0.0


def _iterations(job: TaskGraph, samples: int | None, epochs: float | None, steps: int | None) -> tuple[int, int]:
    """Iterations of an epoch and of the training; 0 if unknown."""
    for name, value in (("samples", samples), ("epochs", epochs), ("steps", steps)):
        if value is not None and value <= 0:
            raise ParameterError(f"train: {name}={value} is not positive")
    if steps is not None and epochs is not None:
        raise ParameterError("train: both steps and epochs are given; give one of them as the length of the training")
    if epochs is not None and samples is None:
        raise ParameterError("train: epochs without samples; give the number of samples of an epoch")
    if samples is not None and not job.samples:
        raise ParameterError(f"train: samples={samples}, but the batch of {job.name} is unknown; give steps instead")
    per_epoch = ceil(samples / job.samples) if samples is not None else 0
    return per_epoch, steps if steps is not None else ceil(per_epoch * epochs) if epochs is not None else 0
