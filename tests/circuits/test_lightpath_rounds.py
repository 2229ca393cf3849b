"""Parts of LIGHTPATH's rule: lasers of a schedule, routes, waveguides and rounds, beside loops over circuits and hops."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from opticcl.circuits import lightpath as rule
from opticcl.circuits import lower
from opticcl.circuits._lasers import (
    lasers_by_colour,
    lasers_by_number,
    lasers_by_offset,
    only_alive,
    relit,
    usable_first,
)
from opticcl.circuits._order import by_pair
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import Circuits, Op, Transfers
from opticcl.routing.paths import open_dimension_order
from opticcl.schedule import generate
from opticcl.schedule.de_bruijn import circuit_colours

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
    """Circuits of some pairs on routes of the machine, none of which share a laser or a photodiode; of one turn."""
    src, dst = drawn_pairs(rng, machine.num_nodes, most)
    lasers = lasers_by_colour(machine, Transfers.of(src, dst, 0, 1, Op.COPY))
    path = open_dimension_order(machine.grid, machine.tile[src], machine.tile[dst])
    every = Circuits.of(np.arange(len(src)), src, dst, 0, lasers.lo, lasers.width, path)
    return every.take(lasers.turn == 0)


# --- which lasers -----------------------------------------------------------------------------------------------------


def by_digit(machine, schedule, number, transfers):
    """LUMORPH of ten nodes with digits of 5 and 2: the first and the last step exchange the first digit."""
    k, stride = (5, 1) if number in (0, 3) else (2, 5)
    return lasers_by_offset(machine, k, stride, transfers)


def by_peer(machine, schedule, number, transfers):
    """The direct exchange: every node is a digit."""
    return lasers_by_offset(machine, machine.num_nodes, 1, transfers)


def by_graph(machine, schedule, number, transfers):
    """A graph of de Bruijn; of eight nodes it has degree 4 at least, and 8 is asked for with sixteen."""
    degree = machine.num_nodes // 2
    return lasers_by_number(machine, degree, circuit_colours(2 * degree, degree, transfers.src, transfers.dst))


def by_colour(machine, schedule, number, transfers):
    """Any other: pairs of the step before keep theirs."""
    before = None
    for step in range(number):
        one = schedule.step(step)
        before = lasers_by_colour(machine, one.take(by_pair(one)), before).sets
    return lasers_by_colour(machine, transfers, before)


@pytest.mark.parametrize("where", ["lasers=3", "lasers=8", "lasers=4,failed=laser:5+laser:9+photodiode:12-14"])
@pytest.mark.parametrize(
    ("algorithm", "collective", "expected"),
    [
        ("lumorph:radix=8", "all_reduce", by_digit),
        ("mesh", "all_to_all", by_peer),
        ("de_bruijn:degree=8", "all_gather", by_graph),
        ("de_bruijn", "all_reduce", by_graph),
        ("ring", "all_reduce", by_colour),
        ("bruck", "all_to_all", by_colour),
        ("double_tree:pipeline=4", "all_reduce", by_colour),
        ("tree", "broadcast", by_colour),
        ("de_bruijn", "broadcast", by_colour),
    ],
)
def test_schedules_get_their_lasers(where, algorithm, collective, expected):
    """By turn, on forty waveguides; the order in which steps list their transfers does not matter."""
    shape = {"lumorph:radix=8": "2x5", "de_bruijn:degree=8": "4x4"}.get(algorithm, "2x4")
    if (algorithm, collective) == ("de_bruijn", "broadcast"):
        where = "lasers=3,failed=laser:0"  # else its circuits stand
    machine = fabric(f"lightpath:shape={shape},waveguides=40,{where}")
    schedule = generate(algorithm, collective, machine)
    rng = np.random.default_rng(1)
    steps = [schedule.step(i) for i in range(schedule.num_steps)]
    steps = [step.take(rng.permutation(len(step))) for step in steps]
    mixed = replace(schedule, step=steps.__getitem__, classes=())
    found = rule.lightpath(machine, mixed)
    damage, real = machine.damage, usable_first(machine.damage, machine.lasers)
    for number, given in enumerate(steps):
        order = by_pair(given)
        transfers = given.take(order)
        lasers = expected(machine, mixed, number, transfers)
        if "failed" in where:
            lasers = relit(damage, transfers, machine.tile, real, lasers)
        turns = []
        for turn in sorted(set(lasers.turn.tolist())):
            row = np.flatnonzero(lasers.turn == turn)
            path = open_dimension_order(
                machine.grid, machine.tile[transfers.src[row]], machine.tile[transfers.dst[row]]
            )
            ends = transfers.src[row], transfers.dst[row]
            circuits = Circuits.of(order[row], *ends, 0, lasers.lo[row], lasers.width[row], path)
            if "failed" in where:
                circuits = only_alive(damage, circuits, machine.tile, real)
            turns.append(sorted(listed(circuits)))
        assert [sorted(listed(circuits)) for circuits in found(number, given)] == turns
        assert not any(circuits.port.any() for circuits in found(number, given))


@pytest.mark.parametrize(
    ("algorithm", "collective"),
    [("mesh", "all_to_all"), ("lumorph:radix=4", "all_gather"), ("de_bruijn", "all_gather")],
)
def test_jobs_get_lasers_by_colour(algorithm, collective):
    """Four nodes of eight, in any order; three lasers are enough for each to send to all others."""
    machine = fabric("lightpath:shape=2x4,lasers=3,waveguides=9")
    part = job(machine, [6, 1, 3, 0])
    plan = lower(part, generate(algorithm, collective, part))
    for number in range(plan.schedule.num_steps):
        given = plan.schedule.step(number)
        nodes = Transfers.of(part.nodes[given.src], part.nodes[given.dst], given.chunk_lo, given.chunk_n, given.op)
        order = by_pair(nodes)
        lasers = lasers_by_colour(machine, nodes.take(order))
        (circuits,) = plan.rounds(number)
        assert circuits.wavelength_lo[order].tolist() == lasers.lo.tolist()
        assert circuits.wavelength_n[order].tolist() == lasers.width.tolist()


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


def test_paths_that_cannot_be_listed_are_refused(monkeypatch):
    """A third of both sides for each transfer: 3 x 20 in a ring on 4 x 5, 3 x 380 in an exchange of all."""
    machine = fabric("lightpath:shape=4x5")
    ring, mesh = (generate(name, "all_gather", machine) for name in ("ring", "mesh"))
    for most, refused in ((1140, []), (1139, [mesh]), (60, [mesh]), (59, [ring, mesh])):
        monkeypatch.setattr(rule, "MOST_HOPS", most)
        for schedule in (ring, mesh):
            if schedule in refused:
                with pytest.raises(UnsupportedError, match="transfers cross about"):
                    rule.lightpath(machine, schedule)
            else:
                rule.lightpath(machine, schedule)
    with pytest.raises(UnsupportedError, match="20 transfers cross about 60 edges, which take 720 B; at most 708 B"):
        rule.lightpath(machine, ring)


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
    """What goes east at tile 0 keeps to its way; all circuits are as wide as without it, and a dead laser changes no rule."""
    text = "lightpath:shape=2x3,lasers=4,waveguides=4"
    whole, stuck, dead = (fabric(text + failed) for failed in ("", ",failed=mzi:0:stuck=2", ",failed=laser:0"))
    schedule = generate("ring", "all_gather", whole)
    (given,) = rule.lightpath(whole, schedule)(0, schedule.step(0))
    assert any(len(fault.circuits) for fault in stuck.part_faults(given))
    (found,) = rule.lightpath(stuck, schedule)(0, schedule.step(0))
    assert not any(len(fault.circuits) for fault in stuck.part_faults(found))
    assert np.bincount(found.transfer, found.wavelength_n).tolist() == [4] * 6
    assert rule.lightpath(dead, schedule).__qualname__ == rule._on_grid(dead, schedule).__qualname__


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
