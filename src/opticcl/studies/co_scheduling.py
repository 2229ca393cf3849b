"""All-reduces and layer-to-layer transfers of a training step, sequentially and concurrently."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opticcl.errors import ParameterError
from opticcl.fabrics import fabric_at_scale
from opticcl.ir import Fabric, ProgressCallback
from opticcl.routing.transfer_rounds import greedy_rounds, optimal_rounds
from opticcl.studies import STUDIES, Chart, Study
from opticcl.studies.concurrent_transfers import (
    ConcurrentPlan,
    ConcurrentTask,
    compile_concurrent,
    disjoint_sets,
    tasks_of,
)
from opticcl.studies.lumorph import UNDER, check_seed
from opticcl.traces import load_workload
from opticcl.units import format_seconds

__all__ = ["co_scheduling"]


@STUDIES.register("co_scheduling")
def co_scheduling(progress: ProgressCallback, *, workload: str, radix: int = 2, seed: int = 0) -> Study:
    """What does a training step gain if calls without common GPUs run concurrently (appendix C)?

    Every set is verified as one plan. Times are by the paper's model, with a reconfiguration on every round.

    Args:
        progress: called with (what, done, total).
        workload: a trace with ranks: a LUMORPH log, a TopoOpt task graph, ...
        radix: of LUMORPH, for the all-reduces.
        seed: of the greedy algorithm 3, whose rounds are reported beside the fewest.
    Source: LUMORPH appendix C.
    """
    check_seed("co_scheduling: seed", seed)
    if radix < 2:
        raise ParameterError(f"co_scheduling: radix={radix}; a digit has at least 2 values, try radix=2")
    loaded = load_workload(workload)
    tasks = tasks_of(loaded)
    where = fabric_at_scale("lightpath", loaded.num_ranks)
    alone = [[i] for i in range(len(tasks))]
    sets = disjoint_sets(tasks)
    known: dict[tuple[Any, ...], ConcurrentPlan] = {}
    rows: list[dict[str, Any]] = []
    for name, order in (("one after the other", alone), ("concurrently", sets)):
        done, until_s = 0, 0.0
        for number, places in enumerate(order):
            progress(f"verify {name}", number, len(order))
            ran = _ran(where, [tasks[i] for i in places], f"lumorph:radix={radix}", known)
            done, took_s = done + len(places), ran.time_s()
            until_s += took_s
            rows.append(
                {
                    "order": name,
                    "calls": _short([tasks[i].name for i in places]),
                    "rounds": ran.num_rounds,
                    "time_s": took_s,
                    "done": done,
                    "until_s": until_s,
                }
            )
    total = {n: [r for r in rows if r["order"] == n] for n in ("one after the other", "concurrently")}
    ends = (
        f"{name}: {len(part)} sets, {sum(r['rounds'] for r in part)} rounds, {format_seconds(part[-1]['until_s'])}"
        for name, part in total.items()
    )
    return Study(
        f"co_scheduling:workload={Path(workload).name},radix={radix},seed={seed}",
        f"Calls of {loaded.name} on {where.num_nodes} GPUs, one after the other and concurrently",
        "LUMORPH appendix C",
        rows,
        Chart("done", "until_s", ("order",), "calls done", "time", steps=True),
        (*ends, *_greedy_note(tasks, where, seed), UNDER),
    )


def _ran(
    where: Fabric, tasks: list[ConcurrentTask], algorithm: str, known: dict[tuple[Any, ...], ConcurrentPlan]
) -> ConcurrentPlan:
    """The tasks concurrently; equal sets of tasks, which training steps repeat, are compiled and verified once."""
    key = tuple(
        (task.size_bytes, task.ranks.tobytes(), task.src.tobytes(), task.dst.tobytes(), task.sent_bytes.tobytes())
        for task in tasks
    )
    if key not in known:
        known[key] = compile_concurrent(where, tasks, algorithm)
    return known[key]


def _short(names: list[str]) -> str:
    return ", ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")


def _greedy_note(tasks: list[ConcurrentTask], where: Fabric, seed: int) -> list[str]:
    """Rounds by algorithm 3 and the fewest, with one laser per transfer."""
    layers = [task for task in tasks if task.is_layer]
    if not layers:
        return []
    lasers = where.lasers_per_port
    greedy = sum(greedy_rounds(task.src, task.dst, lasers, seed=seed).num_rounds for task in layers)
    fewest = sum(optimal_rounds(task.src, task.dst, lasers).num_rounds for task in layers)
    return [f"layer to layer, one laser a transfer: {greedy} rounds by algorithm 3, {fewest} by edge colouring"]
