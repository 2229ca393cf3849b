"""Parts of LIGHTPATH's rule: lasers of a schedule, routes, waveguides and rounds, beside loops over circuits and hops."""

from collections import Counter

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.circuits import lightpath as rule
from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import Op, Schedule, Transfers
from opticcl.schedule import generate

COLUMNS = ("transfer", "src", "dst", "wavelength_lo", "wavelength_n")


def listed(circuits):
    """Columns and path of every circuit."""
    rows = zip(*(getattr(circuits, name).tolist() for name in COLUMNS), strict=True)
    return [(*row, *circuits.path(i).tolist()) for i, row in enumerate(rows)]


def drawn_pairs(rng, nodes, most):
    """Different pairs of nodes."""
    pairs = np.argwhere(~np.eye(nodes, dtype=bool))
    return pairs[np.sort(rng.permutation(len(pairs))[: rng.integers(1, most + 1)])].T


def drawn_circuits(rng, machine, most):
    """Circuits of some pairs, none of which share a laser or a photodiode: the first round on a machine of many waveguides."""
    src, dst = drawn_pairs(rng, machine.num_nodes, most)
    step = Transfers.of(src, dst, np.arange(len(src)), 1, Op.COPY)
    schedule = Schedule("by hand", nothing_required(machine.num_nodes, len(src)), 1, lambda i: step)
    return lower(fabric(f"lightpath:shape=1x6,lasers={machine.lasers},waveguides=100"), schedule).rounds(0)[0]


# --- trees ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_trees_stand_where_they_fit(collective):
    """All circuits of both trees in every round, those that carry nothing idle; on too few lasers those of a step."""
    for lasers, stands in ((8, True), (1, False)):
        machine = fabric(f"lightpath:shape=2x3,waveguides=9,lasers={lasers}")
        plan = lower(machine, generate("disjoint_trees", collective, machine))
        pairs = set()
        for number in range(plan.schedule.num_steps):
            step = plan.schedule.step(number)
            pairs.update(zip(step.src.tolist(), step.dst.tolist(), strict=True))
        for number in range(plan.schedule.num_steps):
            rounds = plan.rounds(number)
            found = {pair for c in rounds for pair in zip(c.src.tolist(), c.dst.tolist(), strict=True)}
            assert (len(rounds) == 1 and found == pairs) == stands
            some = len(plan.schedule.step(number)) < len(pairs)
            assert any((c.transfer < 0).any() for c in rounds) == (stands and some)
            assert not any(c.port.any() for c in rounds)
    dark = fabric("lightpath:shape=2x3,waveguides=9,lasers=8,failed=laser:0")
    plan = lower(dark, generate("disjoint_trees", collective, dark))
    assert not any((c.transfer < 0).any() for i in range(plan.schedule.num_steps) for c in plan.rounds(i))


def test_trees_on_few_waveguides_do_not_stand():
    """One waveguide and all lasers of a node for each edge: circuits of a step at a time."""
    machine = fabric("lightpath:shape=1x6,waveguides=1,lasers=2,switch_unit=waveguide")
    plan = lower(machine, generate("disjoint_trees", "broadcast", machine))
    assert not any((c.transfer < 0).any() for i in range(plan.schedule.num_steps) for c in plan.rounds(i))


# --- what is refused --------------------------------------------------------------------------------------------------


def test_nodes_without_a_laser_are_refused():
    """By name, where the job has them and sends at all."""
    machine = fabric("lightpath:shape=2x3,lasers=2,numbering=random,failed=laser:6-7+laser:9")
    node = int(np.flatnonzero(machine.tile == 3)[0])
    others = [n for n in range(6) if n != node]
    for part, refused in (
        (machine, True),
        (job(machine, [others[0], node]), True),
        (job(machine, others), False),
        (job(machine, [node]), False),
    ):
        schedule = generate("ring", "all_gather", part)
        if refused:
            with pytest.raises(UnsupportedError, match=rf"all lasers of node {node} at \(row=1, column=0\) are dead"):
                rule.lightpath(part, schedule)
        else:
            rule.lightpath(part, schedule)


def test_light_goes_around_a_stuck_switch():
    """What goes east at tile 0 keeps to its way; all circuits are as wide as without it."""
    whole, stuck = (
        fabric(f"lightpath:shape=2x3,lasers=4,waveguides=4{failed}") for failed in ("", ",failed=mzi:0:stuck=2")
    )
    schedule = generate("ring", "all_gather", whole)
    (given,) = rule.lightpath(whole, schedule)(0, schedule.step(0))
    assert any(len(fault.circuits) for fault in stuck.part_faults(given))
    (found,) = rule.lightpath(stuck, schedule)(0, schedule.step(0))
    assert not any(len(fault.circuits) for fault in stuck.part_faults(found))
    assert np.bincount(found.transfer, found.wavelength_n).tolist() == [4] * 6


# --- rounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hurt", ["", ",dead_waveguides=0-1:1+1-2:1+4-3:1", ",dead_lasers=1:0"])
def test_rounds_have_a_waveguide_for_every_circuit(hurt):
    """Each circuit once, no wavelength of an edge more often than its waveguides; one round where all fit, lasers unchanged.

    Else they are at least what the most loaded wavelength of an edge requires, with lasers that differ at every end.
    """
    more = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        waveguides = 2 if "waveguides" in hurt else 1 + seed % 2
        machine = fabric(f"lightpath:shape=1x6,lasers={1 + seed % 5},waveguides={waveguides}{hurt}")
        alive = machine.damage.waveguides(6, machine.waveguides)
        circuits = drawn_circuits(rng, machine, 24)
        rounds = rule.split_by_waveguides(machine, circuits)
        need = Counter(h for i in range(len(circuits)) for h in circuits.path(i).tolist())
        every = sorted(row for each in rounds for row in listed(each))
        assert [(*row[:3], *row[4:]) for row in every] == [(*row[:3], *row[4:]) for row in sorted(listed(circuits))]
        if all(count <= alive[edge] for edge, count in need.items()):
            assert [listed(each) for each in rounds] == [listed(circuits)]
            continue
        loads = []
        for each in [circuits, *rounds]:
            cells = [(h, w) for _, _, _, lo, n, *path in listed(each) for h in path for w in range(lo, lo + n)]
            ends = [
                (end, node, w)
                for _, src, dst, lo, n, *_ in listed(each)
                for end, node in (("src", src), ("dst", dst))
                for w in range(lo, lo + n)
            ]
            assert len(set(ends)) == len(ends)
            loads.append(max(-(-count // alive[edge]) for (edge, _), count in Counter(cells).items()))
        assert loads[1:] == [1] * len(rounds)
        assert len(rounds) <= loads[0]
        if loads[0] == 1 or hurt.startswith(",dead_lasers"):
            assert every == sorted(listed(circuits))
        more += len(rounds) > 1
    assert more > 3
