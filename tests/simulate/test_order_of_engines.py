"""Device <= asynchronous <= barrier, for plans whose circuits narrow, are split in two, and stand idle before they are used.

Every engine's programme is judged by the laws of time.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Schedule, Transfers, concatenate_circuits, no_progress
from opticcl.simulate import programme, simulate
from opticcl.verify.light.circuits import check_light
from opticcl.verify.time.programme import check_programme, rules_of

FABRICS = (
    "terarack:nodes=4,wavelengths=4", "terarack:nodes=3,wavelengths=3", "lightpath:shape=2x2,lasers=4,waveguides=2",
    "lightpath:shape=3x2,lasers=4,waveguides=1", "lightpath:shape=2x2,lasers=2,waveguides=2,switch_unit=waveguide",
    "oddl:shape=4,wavelengths=4", "oddl:shape=2x2,wavelengths=4", "sipac:radices=2x2", "sipac:radices=3",
    "ramp:groups=2,racks=2,wavelengths=2", "ramp:groups=2,racks=1,wavelengths=2,slot=0,switching=1us",
    "terarack_torus:shape=2x3,wavelengths=2", "sip_ring:nodes=4,wavelengths=4", "ocs:nodes=4,planes=2",
)  # fmt: skip
ENGINES = ("device", "flow:mode=asynchronous", "flow", "closed_form")
SETS = [
    assumptions("common"),
    assumptions("published", initial="warm"),
    assumptions("common", reconfiguration_charge="every_step", control_charge="every_step"),
    assumptions("published", initial="cold", receive_buffers="separate", prepare="none"),
]
PLANS, CHUNKS, STEPS = 2, 4, 3


def split_in_two(circuits, row):
    """The circuits, one of them as two of fewer wavelengths."""
    many, lo = int(circuits.wavelength_n[row]), int(circuits.wavelength_lo[row])
    rows = np.insert(np.arange(len(circuits)), row, row)
    both, first = circuits.take(rows), many // 2
    n, low = both.wavelength_n.copy(), both.wavelength_lo.copy()
    n[row : row + 2] = first, many - first
    low[row + 1] = lo + first * circuits.wavelength_step
    return replace(both, wavelength_n=n, wavelength_lo=low)


def narrowed(circuits, row):
    """The circuits, one of them on half of its wavelengths."""
    n = circuits.wavelength_n.copy()
    n[row] = max(1, n[row] // 2)
    return replace(circuits, wavelength_n=n)


def idle_before(rounds, step, row):
    """The circuits of a step with one of a later step, idle."""
    later = rounds[step + 1].take(np.array([row]))
    if later.wavelength_step != rounds[step].wavelength_step:
        return rounds[step]
    return concatenate_circuits([rounds[step], later.carrying_others(np.array([-1], np.int32))])


def rows_of(where, draw):
    """Transfers (step, src, dst, first chunk, chunks, op); in a step a chunk of a rank is written by one copy, or by sums."""
    rows, writes, pairs = [], {}, set()
    for step in range(STEPS):
        for _ in range(int(draw.integers(1, 5))):
            src, dst = (int(node) for node in draw.permutation(where.num_nodes)[:2])
            lo, op = int(draw.integers(CHUNKS)), int(draw.integers(2))
            chunks = range(lo, int(draw.integers(lo, CHUNKS)) + 1)
            before = {writes.get((step, dst, chunk)) for chunk in chunks} - {None}
            joined = where.linked(np.array([src]), np.array([dst]))[0]
            if joined and (step, src, dst) not in pairs and before <= ({1} if op else set()):
                rows.append((step, src, dst, lo, len(chunks), op))
                pairs.add((step, src, dst))
                writes.update({(step, dst, chunk): op for chunk in chunks})
    return rows


def plan_of(where, seed):
    """A plan of a round a step; steps are repeated, and circuits changed where light permits."""
    draw = np.random.default_rng(seed)
    rows = rows_of(where, draw)

    def drawn(i):
        return Transfers.of(*np.array([row[1:] for row in rows if row[0] == i], np.int64).reshape(-1, 5).T)

    first = lower(where, Schedule("drawn", nothing_required(where.num_nodes, CHUNKS), STEPS, drawn))
    steps, rounds = [], []
    for step in range(STEPS):
        for circuits in first.rounds(step):
            if not len(circuits):
                continue
            kept = np.unique(circuits.transfer)
            numbers = np.searchsorted(kept, circuits.transfer).astype(np.int32)
            for _ in range(int(draw.integers(1, 3))):  # the same circuits again stand, however they are divided
                steps.append(first.schedule.step(step).take(kept))
                rounds.append(circuits.carrying_others(numbers))
    schedule = Schedule("drawn", first.schedule.collective, len(steps), lambda i: steps[i])

    def made(circuits):
        return CircuitPlan(where, schedule, lambda i: (circuits[i],))

    for step in draw.permutation(np.repeat(np.arange(len(steps)), 3)).tolist():
        row = int(draw.integers(len(rounds[step])))
        kind = draw.integers(3)
        if kind == 0:
            other = narrowed(rounds[step], row)
        elif kind == 1 and rounds[step].wavelength_n[row] > 1:
            other = split_in_two(rounds[step], row)
        elif step + 1 < len(steps):
            other = idle_before(rounds, step, int(draw.integers(len(rounds[step + 1]))))
        else:
            continue
        tried = [*rounds[:step], other, *rounds[step + 1 :]]
        if not check_light(made(tried), progress=no_progress).violations:
            rounds = tried
    return made(rounds)


def judge(plan, assumed, seed):
    """Times by all engines, each of which is lawful."""
    total = {}
    for engine in ENGINES:
        found = programme(plan, 10**5, assumed, engine=engine)
        verdict = check_programme(plan, found, rules_of(found))
        assert verdict.ok, f"seed {seed}, {engine}: {verdict}"
        total[engine] = simulate(plan, 10**5, assumed, engine=engine).timeline.total_s
        assert found.total_s == pytest.approx(total[engine], rel=1e-9)
    for one, other in pairwise(ENGINES):
        assert total[one] <= total[other] * (1 + 1e-9), f"seed {seed}: {one} after {other}"


@pytest.mark.parametrize("seeds", [range(PLANS), pytest.param(range(PLANS, 16 * PLANS), marks=pytest.mark.deep)])
@pytest.mark.parametrize("specification", FABRICS)
def test_engines_keep_their_order(specification, seeds):
    """Whatever is narrowed, split and idle."""
    where, idle = fabric(specification), 0
    for seed in seeds:
        plan = plan_of(where, seed)
        idle += any((plan.rounds(i)[0].transfer < 0).any() for i in range(plan.schedule.num_steps))
        judge(plan, SETS[seed % len(SETS)], seed)
    assert idle
