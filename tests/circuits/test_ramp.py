"""RAMP's transcoder: full use of the transceivers without contention, and what the judge says when a cell is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from tests.engines import closed_form

from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import CircuitPlan, Op
from opticcl.schedule import generate
from opticcl.verify import verify
from opticcl.verify.light.circuits import check_light

SUBNETS = ("broadcast", "route_broadcast", "route_switch")
CONFIGURATIONS = [(3, 3, 6), (5, 3, 10), (8, 8, 16), (16, 4, 32)]  # of the notes
OTHERS = [(2, 1, 2), (4, 2, 8), (6, 4, 12), (13, 2, 13), (8, 3, 8)]


def plan(
    shape: tuple[int, int, int],
    name: str = "reduce_scatter",
    algorithm: str = "ramp",
    subnet: str = "broadcast",
    b: int = 1,
    root: int = 0,
) -> CircuitPlan:
    """One of the nine operations, lowered."""
    x, racks, devices = shape
    where = fabric("ramp", groups=x, racks=racks, wavelengths=devices, subnet=subnet, transceivers_per_group=b)
    return lower(where, generate(algorithm, Request(name, root), where))


def rules(made: CircuitPlan) -> set[str]:
    """Rules that the light breaks."""
    return {v.rule for v in check_light(made, progress=lambda *_: None).violations}


def each_peer(made: CircuitPlan) -> list[int]:
    """Circuits of a transfer in each step; every step in one round."""
    return [len(circuits) // len(made.schedule.step(i)) for i in range(4) for (circuits,) in [made.rounds(i)]]


@pytest.mark.parametrize("shape", CONFIGURATIONS + OTHERS)
@pytest.mark.parametrize("subnet", SUBNETS)
def test_no_contention(shape: tuple[int, int, int], subnet: str) -> None:
    """Every step of both variants in one round, on every kind of subnet."""
    for variant in ("auto", "modular"):
        made = plan(shape, algorithm=f"ramp:variant={variant}", subnet=subnet)
        assert all(len(made.rounds(i)) == 1 for i in range(made.schedule.num_steps))
        assert not rules(made)


@pytest.mark.parametrize("shape", CONFIGURATIONS)
def test_transceivers_of_a_peer(shape: tuple[int, int, int]) -> None:
    """floor(x / (d-1)) in every step; where x is a power of two and J smaller, J racks share step 3: x / J."""
    x, racks, devices = shape
    made = each_peer(plan(shape))
    due = [x // (d - 1) for d in (x, x, racks, devices // x)]
    due[2] = due[2] if x.bit_count() > 1 else x // racks
    assert made == due


@pytest.mark.parametrize("variant", ["field", "modular"])
@pytest.mark.parametrize("shape", [(8, 4, 16), (16, 4, 32), (5, 3, 10)])
def test_crossbars_free_all_transceivers(variant: str, shape: tuple[int, int, int]) -> None:
    """Behind crossbars racks do not meet: floor(x / (d-1)) in both variants."""
    x, racks, devices = shape
    made = plan(shape, algorithm=f"ramp:variant={variant}", subnet="route_switch")
    assert each_peer(made) == [x // (d - 1) for d in (x, x, racks, devices // x)]


@pytest.mark.parametrize(("subnet", "each"), [("broadcast", 1), ("route_broadcast", 1), ("route_switch", 8)])
def test_formulation_4_2(subnet: str, each: int) -> None:
    """Its racks share the pair of groups: one transceiver a peer in step 4 at J = x, all of them behind crossbars."""
    assert each_peer(plan((8, 8, 16), algorithm="ramp:variant=modular", subnet=subnet))[3] == each


def test_equation_2_in_step_3() -> None:
    """As printed it uses receivers twice for even x (128 of 128 nodes at x = 4) and is right for odd x."""
    even, odd = (plan(s, algorithm="ramp:variant=published") for s in ((4, 4, 8), (5, 5, 10)))
    found = [v for v in check_light(even, progress=lambda *_: None).violations if v.rule == "receiver_shared"]
    assert [(v.step, v.count) for v in found] == [(2, 128)]
    assert not rules(odd)


def test_more_device_groups_than_groups() -> None:
    """(2, 2, 8) has three peers on two transceivers in step 4: rounds."""
    made = plan((2, 2, 8))
    assert len(made.rounds(3)) > 1
    assert not rules(made)


@pytest.mark.parametrize("name", ["all_reduce", "broadcast", "all_to_all"])
@pytest.mark.parametrize("subnet", SUBNETS)
def test_several_transceivers_a_group(name: str, subnet: str) -> None:
    """b = 3 triples every circuit, on the neighbouring transceivers, and stays free of contention."""
    one, three = (plan((3, 3, 6), name, subnet=subnet, b=b) for b in (1, 3))
    for i in range(one.schedule.num_steps):
        for few, many in zip(one.rounds(i), three.rounds(i), strict=True):
            assert np.array_equal(np.repeat(few.transfer, 3), many.transfer)
            assert np.array_equal(np.repeat(few.port, 3), many.port // 3)
    assert verify(three).ok


@pytest.mark.parametrize(("subnet", "each"), [("broadcast", 8), ("route_broadcast", 8), ("route_switch", 2)])
def test_broadcast_at_full_rate(subnet: str, each: int) -> None:
    """One signal on all x transceivers reaches everybody; behind crossbars each rack has x / J of them."""
    made = plan((8, 4, 16), "broadcast", subnet=subnet, root=77)
    for i in range(made.schedule.num_steps):
        (circuits,) = made.rounds(i)
        assert len(circuits) == each * len(made.schedule.step(i))
    assert verify(made).ok


def test_broadcast_behind_crossbars() -> None:
    """They lead a rack to one rack: without splitting it is the fastest for large messages, on couplers it is not."""
    for subnet, best in (("route_switch", "ramp:stages=none"), ("broadcast", "ramp:stages=64")):
        where = fabric("ramp", groups=8, racks=8, wavelengths=16, subnet=subnet)
        times = {
            algorithm: closed_form(
                lower(where, generate(algorithm, "broadcast", where)), 10**9, assumptions("published")
            ).total_s
            for algorithm in ("ramp:stages=none", "ramp:stages=64")
        }
        assert min(times, key=times.__getitem__) == best


@pytest.mark.parametrize("shape", [(1, 1, 5), (2, 1, 8), (3, 1, 9), (2, 2, 12)])
@pytest.mark.parametrize("subnet", SUBNETS)
def test_broadcast_with_few_relays(shape: tuple[int, int, int], subnet: str) -> None:
    """Relays that light more wavelengths than they have transceivers take several rounds."""
    for root in (0, int(np.prod(shape)) - 1):
        assert verify(plan(shape, "broadcast", "ramp:stages=3", subnet, root=root)).ok


def test_another_piece_on_split_light() -> None:
    """A broadcast whose relay hands other data to one listener: its laser would carry two signals."""
    made = plan((4, 4, 8), "broadcast", "ramp:stages=2")

    def step(i: int):  # type: ignore[no-untyped-def]
        transfers = made.schedule.step(i)
        chunk = transfers.chunk_lo.copy()
        chunk[-1] = 1 - chunk[-1]
        return replace(transfers, chunk_lo=chunk) if i == 1 else transfers

    schedule = replace(made.schedule, step=step)
    assert {"transmitter_shared", "wavelength_clash"} <= rules(replace(made, schedule=schedule))


def test_one_signal_may_be_added_by_several_receivers():
    """A RAMP node sends one chunk to nodes of all racks of a group: one signal, stored or added."""
    where = fabric("ramp:groups=2,racks=2,wavelengths=2")
    plan = lower(where, generate("ramp", "broadcast", where))
    heard = 0
    for i in range(plan.schedule.num_steps):
        step = plan.schedule.step(i)
        added = replace(step, op=np.full(len(step), Op.REDUCE, np.uint8))
        schedule = replace(plan.schedule, step=lambda k, added=added: added, num_steps=1, classes=())
        rounds = plan.rounds(i)
        found = check_light(CircuitPlan(where, schedule, lambda k, rounds=rounds: rounds), progress=lambda *_: None)
        assert not found.violations
        heard += len(step) - len(np.unique(step.src))
    assert heard > 0


@pytest.mark.parametrize("shape", [(3, 2, 6), (2, 2, 4), (3, 3, 3)])
@pytest.mark.parametrize(
    ("collective", "steps", "phases"),
    [
        ("all_reduce", 4, "ABBA"),
        ("all_reduce", 2, "AB"),
        ("all_gather", 2, "BA"),
        ("all_to_all", 1, "N"),
        ("broadcast", 1, "R"),
    ],
)
def test_rounds_of_skewed_exchanges(shape: tuple[int, int, int], collective: str, steps: int, phases: str) -> None:
    """As many as labels over planes: p in A, J L / (x p) in B, J L with all at once, L / x from the root."""
    x, racks, places = shape
    where = fabric("ramp", groups=x, racks=racks, wavelengths=places)
    for block in {1, racks} if steps > 1 else {1}:
        call = "skewed_exchange" if collective == "broadcast" else f"skewed_exchange:block={block},steps={steps}"
        plan = lower(where, generate(call, collective, where))
        assert verify(plan).ok
        rounds = {"A": block, "B": racks // block * places // x, "N": racks * places, "R": places // x}
        found = [len(plan.rounds(i)) for i in range(steps)]
        assert sorted(found) == sorted(rounds[phase] for phase in phases)
        for i in range(steps):
            carried = np.concatenate([circuits.transfer for circuits in plan.rounds(i)])
            assert np.sort(carried).tolist() == list(range(len(plan.schedule.step(i))))


def sums(variant: str, x: int) -> tuple[Callable[[int, int], int], Callable[[int, int], int], Callable[[int], int]]:
    """Sum and difference of groups, and the inverse of 1 + d: in the field of x elements, or modulo x."""
    if variant == "field" and x.bit_count() == 1:
        return (lambda a, b: a ^ b), (lambda a, b: a ^ b), lambda u: 1  # not needed
    inverse = (lambda u: pow(u, -1, x)) if variant == "field" else (lambda u: 1)
    return (lambda a, b: (a + b) % x), (lambda a, b: (a - b) % x), inverse


def groups_due(shape: tuple[int, int, int], variant: str, crossbars: bool, phase: int, src: int, dst: int) -> list[int]:
    """Transceiver groups of a transfer by the equations of the module, number by number."""
    x, racks, devices = shape
    d = (x, x, racks, devices // x)[phase - 1]
    add, sub, inverse = sums(variant, x)
    (rest_src, l_src), (rest_dst, l_dst) = divmod(src, devices), divmod(dst, devices)
    (g_src, j_src), (g_dst, j_dst) = divmod(rest_src, racks), divmod(rest_dst, racks)
    most = max(1, x // (d - 1))
    if phase <= 2 or (variant == "published" and phase == 3):
        first = add(add(g_src, g_dst), j_src)
        return [(first + r) % x for r in range(most if crossbars or most * racks <= x else 1)]
    place = (j_dst - j_src) % racks if phase == 3 else (l_dst // x - l_src // x) % d
    if not crossbars and phase == 3:
        if variant == "field" and x.bit_count() == 1:
            width = 1 << (racks - 1).bit_length()
            twice = (
                2 * j_src if 2 * j_src < width else 2 * j_src ^ {2: 0, 4: 7, 8: 11}[width]
            )  # x^2 + x + 1, x^3 + x + 1
            first = j_dst ^ twice if width > 2 else j_src
            return [first + r * width for r in range(x // width)]
        if most == 1 or x == 2:
            return [add(g_dst, j_src)]
        place += sub(g_src * inverse(1 + l_src // x), j_src)
    if not crossbars and phase == 4 and variant == "modular":
        place, most = place + j_src, min(most, x // racks)
    return [((place - 1) * most + r) % x for r in range(most)]


@pytest.mark.parametrize(
    ("shape", "variant"),
    [
        ((2, 1, 2), "modular"), ((4, 2, 16), "modular"), ((2, 2, 8), "modular"), ((4, 2, 8), "modular"), ((5, 3, 10), "field"),
        ((7, 3, 21), "field"), ((7, 3, 14), "modular"), ((8, 3, 16), "field"), ((4, 2, 12), "field"), ((3, 3, 3), "modular"),
        ((4, 4, 8), "published"), ((2, 1, 4), "published"), ((7, 2, 7), "modular"), ((6, 2, 12), "modular"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("subnet", ["broadcast", "route_switch"])
def test_transceivers_by_the_equations(shape: tuple[int, int, int], variant: str, subnet: str) -> None:
    """Every transfer of every step; with more peers than a pair of groups has transceivers, step 4 goes by first fit."""
    x, racks, devices = shape
    made = plan(shape, algorithm=f"ramp:variant={variant}", subnet=subnet)
    active = [k + 1 for k, d in enumerate((x, x, racks, devices // x)) if d > 1]
    assert made.schedule.num_steps == len(active)
    for i, phase in enumerate(active):
        if variant == "modular" and phase == 4 and devices // x > x:
            continue
        (circuits,) = made.rounds(i)
        ports: dict[tuple[int, int], list[int]] = {}
        for src, dst, port in zip(circuits.src.tolist(), circuits.dst.tolist(), circuits.port.tolist(), strict=True):
            ports.setdefault((src, dst), []).append(port)
        due = {pair: groups_due(shape, variant, subnet == "route_switch", phase, *pair) for pair in ports}
        assert ports == due


@pytest.mark.parametrize(
    ("shape", "parent", "variant"),
    [
        ((4, 2, 8), (8, 4, 16), "field"), ((3, 2, 3), (5, 3, 10), "modular"), ((2, 2, 8), (4, 4, 8), "modular"),
        ((5, 3, 10), (5, 4, 15), "field"), ((1, 1, 5), (4, 2, 8), "modular"),
    ],
)  # fmt: skip
def test_a_part_has_its_own_parameters(shape: tuple[int, int, int], parent: tuple[int, int, int], variant: str) -> None:
    """Steps, sizes and transceivers of the equations with the part's numbers; of x' groups each has floor(x / x') planes."""
    random = Random(f"{shape} {parent}")
    x, racks, devices = shape
    groups, of_group, places = (random.sample(range(side), many) for side, many in zip(parent, shape, strict=True))
    nodes = [(g * parent[1] + j) * parent[2] + place for g in groups for j in of_group for place in places]
    where = job(Ramp(groups=parent[0], racks=parent[1], wavelengths=parent[2]), nodes)
    made = lower(where, generate(f"ramp:variant={variant}", "reduce_scatter", where))
    active = [k + 1 for k, d in enumerate((x, x, racks, devices // x)) if d > 1]
    assert made.schedule.num_steps == len(active)
    planes, left = parent[0] // x, x * racks * devices
    for i, phase in enumerate(active):
        left //= (x, x, racks, devices // x)[phase - 1]
        assert (made.schedule.step(i).chunk_n == left).all()
        if variant == "modular" and phase == 4 and devices // x > x:
            continue
        (circuits,) = made.rounds(i)
        ports: dict[tuple[int, int], list[int]] = {}
        ends = where.ranks_at(circuits.src).tolist(), where.ranks_at(circuits.dst).tolist()
        for src, dst, port in zip(*ends, circuits.port.tolist(), strict=True):
            ports.setdefault((src, dst), []).append(port)
        due = {pair: groups_due(shape, variant, False, phase, *pair) for pair in ports}
        assert ports == {pair: [g * planes + k for g in groups for k in range(planes)] for pair, groups in due.items()}
    verify(made).raise_if_bad()


def test_light_that_meets_goes_by_first_fit() -> None:
    """Receivers without filters: RAMP-x and skewed exchanges are right."""
    without = fabric("ramp:groups=2,racks=2,wavelengths=2,receiver=none")
    for algorithm, name in (("ramp", "all_reduce"), ("skewed_exchange:steps=1", "all_to_all")):
        assert verify(lower(without, generate(algorithm, name, without))).ok


def test_the_printed_form_takes_one_round_in_every_step() -> None:
    """Also where a pair of groups has fewer transceivers than peers, which then meet."""
    made = plan((2, 2, 8), algorithm="ramp:variant=published")
    assert [len(made.rounds(i)) for i in range(4)] == [1] * 4
    assert rules(made)
