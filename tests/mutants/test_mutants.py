"""The verifier refuses each broken plan by the name of the rule that it breaks.

A mutant is a right plan with one small thing changed. A judge that accepts one, or refuses it by another rule, is no judge.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.small_systems import SYSTEMS

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Op, Transfers, concatenate_circuits, concatenate_transfers
from opticcl.schedule import generate
from opticcl.verify import verify


def right_plan(system: str) -> CircuitPlan:
    """A small plan of a system, which the verifier accepts."""
    specification, algorithm = SYSTEMS[system]
    made = fabric(specification)
    plan = lower(made, generate(algorithm, "all_reduce", made))
    assert verify(plan).ok
    return plan


def with_transfers(plan: CircuitPlan, step: int, edit) -> CircuitPlan:
    """The plan with the transfers of one step edited; its circuits stay as they are."""

    def changed(i: int) -> Transfers:
        transfers = plan.schedule.step(i)
        return edit(transfers) if i == step else transfers

    schedule = replace(plan.schedule, step=changed, classes=())
    return replace(plan, schedule=schedule)


def with_circuits(plan: CircuitPlan, edit, step: int = 0) -> CircuitPlan:
    """The plan with the first round of one step edited."""

    def rounds(i: int):
        kept = plan.rounds(i)
        return (edit(kept[0]), *kept[1:]) if i == step else kept

    alone = tuple(range(i, i + 1) for i in range(plan.schedule.num_steps))
    return replace(plan, rounds=rounds, schedule=replace(plan.schedule, classes=alone))


def rules(plan: CircuitPlan) -> set[str]:
    """Names of the broken rules."""
    return {v.rule for v in verify(plan).violations}


def edited(row, column, value):
    """An edit that changes one cell of one column, of transfers or circuits."""

    def edit(table):
        cells = getattr(table, column).copy()
        cells[row] = value(table) if callable(value) else value
        return replace(table, **{column: cells})

    return edit


def rows(transfers: Transfers, keep) -> Transfers:
    """The given rows of the transfers."""
    return transfers.take(keep)


# --- the data -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_doubled_transfer(system):
    """Adding a piece twice counts its contributions twice."""
    mutant = with_transfers(right_plan(system), 0, lambda t: concatenate_transfers([t, rows(t, [0])]))
    assert "contribution_doubled" in rules(mutant)


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_dropped_transfer(system):
    """A piece that is never sent is missing in the end, and nothing else is wrong with the data."""
    mutant = with_transfers(right_plan(system), 0, lambda t: rows(t, slice(1, None)))
    assert "contribution_missing" in rules(mutant)
    assert "contribution_doubled" not in rules(mutant)


@pytest.mark.parametrize("system", ["ramp", "sipac", "oddl", "ideal", "lightpath"])
def test_a_swapped_chunk(system):
    """Sending the chunk beside the right one leaves its place without a contribution (and may double one beside it)."""

    def edit(t):
        lo = t.chunk_lo.copy()
        lo[0] = (lo[0] + t.chunk_n[0]) if lo[0] == 0 else lo[0] - 1
        return replace(t, chunk_lo=lo)

    broken = rules(with_transfers(right_plan(system), 0, edit))
    assert "contribution_missing" in broken
    assert broken <= {"contribution_missing", "contribution_doubled"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_sum_stored_in_place_of_added(system):
    """Storing instead of adding loses the earlier contributions."""
    mutant = with_transfers(right_plan(system), 0, edited(0, "op", Op.COPY))
    assert rules(mutant) & {"contribution_missing", "chunk_overwritten"}


def test_two_copies_into_one_place():
    """Of two copies to one chunk, the one that stays is undefined."""

    def edit(t):
        return concatenate_transfers([t, replace(rows(t, [0]), src=rows(t, [1]).src)])

    plan = right_plan("ideal")
    assert "chunk_overwritten" in rules(with_transfers(plan, plan.schedule.num_steps - 1, edit))


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("dst", 999, "rank_unknown"),
        ("src", -1, "rank_unknown"),
        ("chunk_lo", -1, "chunk_unknown"),
        ("chunk_n", 999, "chunk_unknown"),
        ("chunk_n", 0, "chunk_unknown"),
        ("op", 7, "operation_unknown"),
    ],
)
def test_rows_that_do_not_exist(column, value, rule):
    """Ranks, chunks and operations out of range are reported before anything is replayed."""
    assert rule in rules(with_transfers(right_plan("ramp"), 3, edited(1, column, value)))


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (1, "contribution_missing"),
        (2, "contribution_missing"),
        (0, "chunk_unknown"),
        (-3, "chunk_unknown"),
        (5, "chunk_unknown"),
        (2**31 - 1, "chunk_unknown"),
    ],
)
def test_chunks_at_another_distance(value, rule):
    """Of the gathering step of a de Bruijn graph, whose transfers carry every third chunk of nine."""
    where = fabric("lightpath:shape=3x3")
    plan = lower(where, generate("de_bruijn:steps=4", "all_reduce", where))
    assert verify(plan).ok
    assert rule in rules(with_transfers(plan, 3, edited(3, "chunk_step", value)))


def test_a_class_of_steps_that_are_not_distinct():
    """The verifier checks one step of a class and compares the others with it."""
    plan = right_plan("ideal")

    def step(i):
        t = plan.schedule.step(i)
        return rows(t, slice(None, None, -1)) if i == 2 else t

    schedule = replace(plan.schedule, step=step, classes=plan.schedule.step_classes())
    assert "steps_unequal" in rules(replace(plan, schedule=schedule))


def test_sending_what_one_does_not_hold():
    """A broadcast from a rank that holds nothing."""
    plan = right_plan("ideal")
    only_root = replace(
        plan.schedule.collective, before=lambda rank, chunk: np.broadcast_to(rank == 0, np.broadcast(rank, chunk).shape)
    )
    assert "sent_before_held" in rules(replace(plan, schedule=replace(plan.schedule, collective=only_root)))


# --- the light ----------------------------------------------------------------------------------------------------------


def doubled(circuits):
    """One more circuit, identical to the first."""
    return concatenate_circuits([circuits, circuits.take([0])])


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        ("ramp", "transmitter_shared"),
        ("sipac", "laser_shared"),
        ("terarack", "laser_shared"),
        ("oddl", "transmitter_shared"),
        ("lightpath", "laser_shared"),
    ],
)
def test_a_shared_laser(system, rule):
    """Two circuits from one laser."""
    assert rule in rules(with_circuits(right_plan(system), doubled))


@pytest.mark.parametrize(
    ("system", "rule"),
    [
        ("ramp", "receiver_shared"),
        ("sipac", "photodiode_shared"),
        ("terarack", "photodiode_shared"),
        ("oddl", "receiver_shared"),
        ("lightpath", "photodiode_shared"),
    ],
)
def test_a_receiver_used_twice(system, rule):
    """Two circuits into one receiver."""
    assert rule in rules(with_circuits(right_plan(system), doubled))


def test_a_wavelength_clash_in_a_star_coupler():
    """Two signals of one wavelength into one RAMP subnet, from different lasers to different receivers."""
    plan = right_plan("ramp")
    circuits = plan.rounds(0)[0]
    group = 32  # nodes of a group
    for other in range(1, len(circuits)):
        distinct = circuits.src[other] != circuits.src[0] and circuits.dst[other] != circuits.dst[0]
        same_groups = np.array_equal(circuits.path(other), circuits.path(0))
        if distinct and same_groups and circuits.wavelength_lo[other] == circuits.wavelength_lo[0]:
            break
    assert circuits.src[other] // group == circuits.src[0] // group
    mutant = with_circuits(plan, edited(other, "port", circuits.port[0]))
    assert "wavelength_clash" in rules(mutant)


def test_a_wavelength_clash_on_a_fibre():
    """Two WRHT nodes of one side of a group on one wavelength meet before the representative."""
    circuits = right_plan("terarack").rounds(0)[0]
    side = np.flatnonzero((circuits.dst == circuits.dst[0]) & (circuits.port == circuits.port[0]))
    assert set(circuits.wavelength_lo[side]) == {0, 1}
    mutant = with_circuits(right_plan("terarack"), edited(side, "wavelength_lo", 0))
    assert {"wavelength_clash", "photodiode_shared"} <= rules(mutant)


@pytest.mark.parametrize(
    ("system", "step", "rule"),
    [("ramp", 0, "wavelength_unheard"), ("sipac", 0, "wavelength_unheard"), ("oddl", 1, "switch_reset")],
)
def test_a_wrong_colour(system, step, rule):
    """A wavelength that no receiver is tuned to, or that the switch sends elsewhere."""
    plan = right_plan(system)
    top = plan.fabric.num_wavelengths
    mutant = with_circuits(plan, edited(0, "wavelength_lo", lambda c: (c.wavelength_lo[0] + 1) % top), step)
    assert rule in rules(mutant)


@pytest.mark.parametrize("system", ["ramp", "sipac", "terarack", "oddl", "lightpath"])
def test_a_cut_path(system):
    """A path that ends before the receiver."""

    def cut(circuits):
        longest = int(np.argmax(circuits.num_hops()))
        end = circuits.hop_offsets[longest + 1]
        offsets = circuits.hop_offsets.copy()
        offsets[longest + 1 :] -= 1
        return replace(circuits, hops=np.delete(circuits.hops, end - 1), hop_offsets=offsets)

    assert rules(with_circuits(right_plan(system), cut)) == {"path_broken"}


@pytest.mark.parametrize("system", ["ramp", "sipac", "terarack", "oddl", "lightpath"])
def test_a_bent_path(system):
    """A path through a hop that leads elsewhere, or that does not exist."""
    for hop in (-1, 10**6):
        assert "path_broken" in rules(with_circuits(right_plan(system), edited(0, "hops", hop)))


def test_an_overfull_waveguide():
    """With one waveguide per edge, two rounds merged into one exceed its capacity."""
    plan = right_plan("lightpath")
    step = next(i for i in range(plan.schedule.num_steps) if len(plan.rounds(i)) > 1)

    def rounds(i):
        return (concatenate_circuits(plan.rounds(i)),) if i == step else plan.rounds(i)

    assert rules(replace(plan, rounds=rounds)) == {"waveguide_overfull"}


def on_whole_waveguides() -> CircuitPlan:
    """An all-reduce on LIGHTPATH whose switches move whole waveguides."""
    where = fabric("lightpath:shape=3x4,lasers=4,waveguides=2,switch_unit=waveguide")
    return lower(where, generate("lumorph:radix=4", "all_reduce", where))


@pytest.mark.parametrize(
    "edit", [lambda c: replace(c, waveguide=None), edited(0, "waveguide", -1), edited(0, "waveguide", 2)]
)
def test_a_circuit_without_a_waveguide(edit):
    """No column, or a number that no edge has."""
    assert rules(with_circuits(on_whole_waveguides(), edit)) == {"waveguide_unassigned"}


def test_two_settings_of_one_switch():
    """All on waveguide 0: paths that part there need one MZI in two ways, whatever their wavelengths."""
    assert rules(with_circuits(on_whole_waveguides(), edited(slice(None), "waveguide", 0))) == {"mzi_clash"}


@pytest.mark.parametrize("system", SYSTEMS)
def test_light_for_every_transfer(system):
    """A transfer without a circuit, a circuit of another transfer, and one of none."""
    plan = right_plan(system)
    first = plan.rounds(0)[0]
    last = int(first.transfer.max())
    dark = with_circuits(plan, lambda c: c.take(c.transfer != last))
    assert rules(dark) == {"transfer_not_carried"}
    astray = with_circuits(plan, edited(first.transfer == last, "transfer", 0))
    assert {"circuit_astray", "transfer_not_carried"} <= rules(astray)
    assert "transfer_unknown" in rules(with_circuits(plan, edited(0, "transfer", 10**6)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_carrying_a_transfer_twice(system):
    """The same circuits in a second round would deliver the data twice."""
    plan = right_plan(system)
    mutant = replace(plan, rounds=lambda i: (*plan.rounds(i), plan.rounds(i)[0]))
    assert "transfer_carried_twice" in rules(mutant)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("port", 10**6, "port_unknown"),
        ("port", -1, "port_unknown"),
        ("wavelength_lo", 10**6, "wavelength_unknown"),
        ("wavelength_n", 0, "wavelength_unknown"),
        ("wavelength_lo", -1, "wavelength_unknown"),
        ("src", -1, "node_unknown"),
        ("dst", 10**6, "node_unknown"),
    ],
)
def test_light_that_does_not_exist(system, column, value, rule):
    """Nodes, ports and wavelengths out of range are reported, never used as indices."""
    assert rule in rules(with_circuits(right_plan(system), edited(0, column, value)))
