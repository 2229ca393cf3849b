"""Failed parts: what a user may write, what the verifier refuses, and that plans keep to what works."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Condition, Fabric, Occupied, PartKind
from opticcl.ir.occupied import conditions_as_text, parse_conditions
from opticcl.plans.plan import Plan, compile
from opticcl.verify import verify

SMALL = {
    "ramp": "ramp:groups=3,racks=2,wavelengths=3",
    "ramp_planes": "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2",
    "ramp_router": "ramp:groups=3,racks=2,wavelengths=3,subnet=route_broadcast",
    "ramp_crossbar": "ramp:groups=3,racks=2,wavelengths=3,subnet=route_switch",
    "terarack": "terarack:nodes=7,wavelengths=4",
    "terarack_striped": "terarack:nodes=8,wavelengths=4,rings=2,striping=true",
    "sipac": "sipac:radix=3,levels=2",
    "sipac_mixed": "sipac:radices=2x3,channels=retuned",
    "sipac_ring": "sipac:radices=2x3,channels=ring",
    "oddl": "oddl:shape=2x4",
    "lightpath": "lightpath:shape=3x3,waveguides=4,numbering=squares",
}
OTHER_SUBNETS = ("ramp_router", "ramp_crossbar")
"""Machines around whose failed parts `make test-deep` alone plans."""


def dead(kind: str, *indices: int) -> list[Condition]:
    """Dead parts of a kind."""
    return [Condition(kind, index) for index in indices]


def on(where: Fabric, plan: Plan) -> set[str]:
    """Rules that the circuits of a plan break on another fabric."""
    found = verify(CircuitPlan(where, plan.schedule, plan.circuits.rounds))
    return {violation.rule for violation in found.violations}


# --- texts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("filter:3", None),
        ("filter:3:stuck", "it needs one; try stuck=0"),
        ("filter:3:stuck=1", "settings of a filter are 0 to 0"),
        ("filter:3:dead=1", "only a stuck part has a setting"),
        ("filter:3:stuck=0", None),
    ],
)
def test_settings_of_stuck_parts(written: str, hint: str | None) -> None:
    """A stuck part has a setting, others have none."""
    if hint is None:
        assert len(fabric("terarack:nodes=4", failed=written).conditions) == 1
        return
    with pytest.raises(FabricError, match=hint):
        fabric("terarack:nodes=4", failed=written)


KINDS = (PartKind("node", 30), PartKind("filter", 20, 3))


@examples(40)
@given(st.sets(st.tuples(st.sampled_from([0, 1]), st.integers(0, 19), st.booleans(), st.integers(0, 2))))
def test_a_text_names_the_conditions(drawn: set[tuple[int, int, bool, int]]) -> None:
    """And is read again."""
    parts = {(kind, index): (stuck and kind == 1, value) for kind, index, stuck, value in drawn}
    conditions = tuple(
        sorted(
            Condition(KINDS[kind].kind, index, "stuck" if stuck else "dead", value if stuck else 0)
            for (kind, index), (stuck, value) in parts.items()
        )
    )
    text = conditions_as_text(conditions)
    assert (text is None) == (not conditions)
    assert text is None or parse_conditions(text, KINDS, "test") == conditions


# --- values -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SMALL)
def test_conditions_add_up(name: str) -> None:
    """without(a).without(b) is without(a + b), nothing changes nothing, and fabrics pickle by value."""
    where = fabric(SMALL[name])
    kinds = [kind.kind for kind in where.inventory() if kind.kind not in ("node", "mzi")]
    one, other = dead(kinds[0], 1), dead(kinds[-2], 2)
    both = where.without([*other, *one])
    assert where.without(one).without(other).conditions == both.conditions == tuple(sorted([*one, *other]))
    assert where.without([]) == where
    assert pickle.loads(pickle.dumps(both)) == both
    assert type(both) is type(where)
    assert fabric(SMALL[name], failed=both.parameters["failed"]) == both
    with pytest.raises(FabricError, match="twice"):
        both.without(one)


def test_dead_nodes_are_in_no_job() -> None:
    """Ranks are counted without them, also in jobs."""
    where = fabric(SMALL["sipac"]).without(dead("node", 4) + dead("switch", 1))
    assert where.num_nodes == 8
    assert 4 not in where.machine_nodes(np.arange(8))
    assert where.without(dead("node", 0)).num_nodes == 7
    assert pickle.loads(pickle.dumps(where)) == where


def test_cells_add_up() -> None:
    """Equal cells once, in order; equal by value."""
    one, other = Occupied.of([(0, 3, 1, 1), (0, 2, 0, 1)]), Occupied.of([(0, 3, 1, 2)])
    both = one + other
    assert both == Occupied.of([(0, 3, 1, 3), (0, 2, 0, 1)])
    assert hash(both) == hash(other + one)
    assert both != one
    counts = np.zeros(8, np.int64)
    both.add_to(0, 2, counts)
    assert counts.tolist() == [0, 0, 0, 0, 1, 0, 0, 3]


def test_lightpath_has_two_spellings() -> None:
    """dead_* and failed name the same parts."""
    where = "lightpath:shape=3x3,waveguides=4,lasers=4"
    old = fabric(f"{where},dead_tiles=4,dead_lasers=5:0-1,dead_waveguides=0-1:2")
    new = fabric(where, failed="node:4+laser:20-21+waveguide:0-1")
    assert old.conditions == new.conditions
    assert old.grid.width().tolist() == new.grid.width().tolist()
    shut = fabric(where, failed="mzi:0")
    assert shut.damage.dead.tolist() == [4]
    with pytest.raises(FabricError, match="twice"):
        fabric(f"{where},dead_lasers=5:0,failed=laser:20")


# --- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [0, pytest.param(-1, marks=pytest.mark.deep)], ids=["first", "last"])
@pytest.mark.parametrize("collective", [pytest.param("all_reduce", marks=pytest.mark.deep), "all_to_all"])
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.deep) if one in OTHER_SUBNETS else one for one in SMALL]
)
def test_plans_keep_to_what_works(name: str, collective: str, at: int) -> None:
    """The first and the last part of every kind: whatever is compiled is verified on the fabric without it."""
    where = fabric(SMALL[name])
    compiled = 0
    for kind in where.inventory():
        left = where.without(dead(kind.kind, at % kind.count))
        try:
            plan = compile(left, collective, "1 MB")
        except UnsupportedError:
            continue
        compiled += 1
        plan.verify().raise_if_bad()
    assert compiled > 1


@pytest.mark.parametrize("name", SMALL)
def test_a_plan_that_uses_a_failed_part_is_refused(name: str) -> None:
    """By name, for every kind of part that light passes."""
    where = fabric(SMALL[name])
    plan = compile(
        where, "all_to_all", "1 MB", algorithm="ring" if name == "oddl" or name.startswith("sipac") else "mesh"
    )
    circuits = plan.circuits.rounds(0)[0]
    kinds = {kind.kind for kind in where.inventory()} - {"waveguide"}
    seen = set()
    for use in where.parts_used(circuits):
        if use.kind == "node":
            continue
        seen.add(use.kind)
        assert on(where.without(dead(use.kind, int(use.part[0]))), plan) == {"part_failed"}, use.kind
    assert seen == kinds - {"node"}


def test_a_stuck_transmitter_takes_its_cell() -> None:
    """Its light stands in a star coupler: a plan that sends there on that wavelength clashes, and others are refused too."""
    where = fabric(SMALL["ramp"])
    stuck = where.without([Condition("transmitter", 0, "stuck", 1 * 3 + 2)])  # node 0, port 0: gate 1, wavelength 2
    assert stuck.occupied == Occupied.of([(2, 1 * 3 + 0, 2, 1)])
    gates = np.array([[1, 0]])
    schedule = compile(where, "send_recv", "1 MB").schedule

    def judged(src: int, port: int) -> set[str]:
        step = schedule.step(0).take([0])
        one = Circuits.of([0], [src], [8], port, 8 % 3, 1, gates)
        plan = CircuitPlan(stuck, schedule, lambda i: (one,))
        found = verify(plan).violations
        assert step is not None
        return {v.rule for v in found} & {"part_failed", "wavelength_clash"}

    assert judged(0, 0) == {"part_failed"}
    assert judged(1, 0) == {"wavelength_clash"}
    assert judged(1, 1) == set()
    plan = compile(stuck, "all_reduce", "1 MB")
    plan.verify().raise_if_bad()


def test_a_stuck_filter_ends_what_passes() -> None:
    """Light that ends at its node is received, light that would pass is lost."""
    where = fabric("terarack:nodes=6,wavelengths=2,failed=filter:8:stuck=0")  # node 2, clockwise, wavelength 0
    path = (np.array([1, 1, 2, 0, 1, 2]), np.array([0, 1, 3, 6]))
    circuits = Circuits.of([0, 1, 2], [1, 1, 0], [2, 3, 3], 0, 0, 1, path)
    (fault,) = [f for f in where.part_faults(circuits) if len(f.circuits)]
    assert (fault.rule, fault.circuits.tolist()) == ("part_failed", [1, 2])
    compile(where, "all_to_all", "1 MB").verify().raise_if_bad()


def test_a_stuck_switch_serves_what_agrees_with_its_setting() -> None:
    """All inputs lead one output further: such circuits stay, where a dead switch has none; all other plans go around it."""
    lines = np.arange(4)  # switch 5: row 1 of four nodes, dimension 1
    nodes = 4 + lines
    next_, over = (Circuits.of(lines, nodes, 4 + (lines + gap) % 4, 1, 0, 1, np.ones((4, 1))) for gap in (1, 2))
    stuck, gone = (fabric(f"oddl:shape=4x4,failed=switch:5{mode}") for mode in (":stuck=1", ""))

    def refused(where: Fabric, circuits: Circuits) -> list[int]:
        return sorted({int(row) for fault in where.part_faults(circuits) for row in fault.circuits})

    assert refused(stuck, next_) == []
    assert refused(stuck, over) == refused(gone, next_) == [0, 1, 2, 3]
    plan = compile(stuck, "all_reduce", "100 MB")
    plan.verify().raise_if_bad()
    assert plan.simulate().total_s < compile(gone, "all_reduce", "100 MB").simulate().total_s
    for setting in (0, 4):
        with pytest.raises(FabricError, match=r"stuck=|settings of a switch are 0 to 3"):
            fabric(f"oddl:shape=4x4,failed=switch:5:stuck={setting}")


def test_identical_lasers_cost_the_same() -> None:
    """Whichever laser or photodiode of a tile is dead."""
    times = set()
    for kind in ("laser", "photodiode"):
        for number in (0, 4, 7, 8, 15):
            where = fabric("lightpath:shape=4x4,waveguides=4", failed=f"{kind}:{80 + number}")
            times.add(compile(where, "all_reduce", "100 MB").simulate(compute="none").total_s)
    assert len(times) == 1


TOGETHER = ("control_shared", "idle_plane_light")
"""Rules of circuits that are lit at the same time."""


def options_of(name: str) -> tuple[Fabric, Any]:
    """All ways to light all pairs of a fabric."""
    where = fabric(SMALL[name])
    pairs = np.argwhere(~np.eye(where.num_nodes, dtype=bool))
    return where, where.options(pairs[:, 0], pairs[:, 1]).circuits


@pytest.mark.parametrize("name", [name for name in SMALL if name != "lightpath"])
def test_options_are_what_the_hardware_can_make(name: str) -> None:
    """Each by itself; and every part lies on the way of some."""
    where, lit = options_of(name)
    faults = [f for f in where.faults(lit) if len(f.circuits) and f.rule not in TOGETHER]
    assert not faults
    used: dict[str, set[int]] = {}
    for use in where.parts_used(lit):
        used.setdefault(use.kind, set()).update(use.part.tolist())
    for kind in where.inventory():
        assert max(used[kind.kind]) < kind.count
        if kind.kind in ("node", "comb_laser", "transmitter", "receiver", "switch", "star", "fibre"):
            assert used[kind.kind] == set(range(kind.count)), kind.kind


Way = tuple[int, int, int, int, tuple[int, ...]]


def changed_ways(lit: Circuits, row: int, nodes: int) -> Iterator[Way]:
    """A circuit (src, dst, port, wavelength, hops) with one thing changed: its receiver, its port, its light or its path."""
    src, dst, port, light = (int(column[row]) for column in (lit.src, lit.dst, lit.port, lit.wavelength_lo))
    hops = tuple(lit.path(row).tolist())
    yield from ((src, other, port, light, hops) for other in range(nodes) if other != src)
    yield from ((src, dst, port + more, light, hops) for more in (-1, 1))
    yield from ((src, dst, port, light + more, hops) for more in (-1, 1))
    yield from ((src, dst, port, light, other) for other in (hops[:-1], hops[1:], (*hops, hops[0]), hops[::-1]))
    yield from (
        (src, dst, port, light, (*hops[:at], hops[at] + more, *hops[at + 1 :]))
        for at in range(len(hops))
        for more in (-1, 1)
    )


def refused(where: Fabric, ways: list[Way]) -> set[Way]:
    """Those that the hardware cannot make."""
    src, dst, port, light = np.array([way[:4] for way in ways]).T
    path = np.concatenate([np.array(way[4], np.int64) for way in ways]), np.cumsum([0, *(len(way[4]) for way in ways)])
    made = Circuits.of(np.arange(len(ways)), src, dst, port, light, 1, path)
    return {ways[row] for fault in where.faults(made) if fault.rule not in TOGETHER for row in fault.circuits.tolist()}


@pytest.mark.parametrize("name", [name for name in SMALL if name != "lightpath"])
def test_what_is_no_option_is_refused(name: str) -> None:
    """Of circuits that differ from an option in one thing, the hardware can make those alone that are options too."""
    where, lit = options_of(name)
    one_line = (lit.wavelength_n == 1).all()

    def key(way: Way) -> tuple[Any, ...]:
        return way if one_line else (*way[:3], *way[4:])

    columns = [column.tolist() for column in (lit.src, lit.dst, lit.port, lit.wavelength_lo)]
    paths = [tuple(lit.path(row).tolist()) for row in range(len(lit))]
    options = {key(way) for way in zip(*columns, paths, strict=True)}
    ways = sorted({way for row in range(0, len(lit), 3) for way in changed_ways(lit, row, where.num_nodes)})
    ways = [way for way in ways if 0 <= way[2] < where.ports_per_node and 0 <= way[3] < where.num_wavelengths]
    left = ways
    while bad := refused(where, left):  # what has no path is said first, and nothing else with it
        left = [way for way in left if way not in bad]
    assert set(left) == {way for way in ways if key(way) in options}


@pytest.mark.parametrize(("dead_planes", "slots"), [(0, 18), (1, 27), (2, 54)])
def test_labels_are_dealt_over_the_planes_that_work(dead_planes: int, slots: int) -> None:
    """N = 54 labels on x - f of 3 planes: ceil(N / (x - f)) slots, verified."""
    where = fabric("ramp:groups=3,racks=3,wavelengths=6")
    lost = [Condition("transmitter", node * 3 + plane) for node in range(54) for plane in range(dead_planes)]
    plan = compile(where.without(lost), "all_to_all", 54 * 950, algorithm="skewed_exchange:steps=1")
    plan.verify().raise_if_bad()
    assert plan.simulate().num_rounds == slots


@pytest.mark.parametrize(
    "spec",
    [
        "ramp:groups=2,racks=2,wavelengths=2",
        "ramp:groups=2,racks=2,wavelengths=2,subnet=route_broadcast",
        "sipac:radix=3,levels=2",
        "sipac:radix=3,levels=2,channels=retuned",
        "terarack:nodes=4,wavelengths=2",
        "oddl:shape=2x4,control_radix=2",
        "lightpath:shape=2x3,waveguides=2,lasers=4",
    ],
)
def test_parts_of_a_kind_are_the_same_alone(spec):
    """Uses come kind by kind, so those of some kinds are complete where the search for them ends."""
    where = fabric(spec)
    pairs = np.argwhere(~np.eye(where.num_nodes, dtype=bool))
    circuits = where.options(pairs[:, 0], pairs[:, 1]).circuits
    uses = list(where.parts_used(circuits))
    kinds = [use.kind for use in uses]
    for chosen in ([kind] for kind in dict.fromkeys(kinds)):
        alone = list(where.parts_of_kinds(chosen, circuits))
        expected = [use for use in uses if use.kind in chosen]
        assert len(alone) == len(expected)
        assert all(np.array_equal(a.part, b.part) for a, b in zip(alone, expected, strict=True))
    assert len(list(where.parts_of_kinds(set(kinds), circuits))) == len(uses)
