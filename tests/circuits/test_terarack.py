"""Light on a TeraRack ring: WRHT's closed forms, the exchange, and first fit for everything else."""

from __future__ import annotations

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.circuits.terarack import exchange_on_line
from opticcl.collective import Request, collective
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan, Circuits, Fabric, Op, Schedule, Transfers, Violation
from opticcl.schedule import generate
from opticcl.schedule.wavelength_exchange import exchange_wavelengths, lap_of
from opticcl.verify import verify


def compiled(where: str, algorithm: str = "wrht", name: str = "all_reduce", root: int = 0) -> CircuitPlan:
    """A lowered collective."""
    made = fabric(where)
    return lower(made, generate(algorithm, Request(name, root), made))


def wavelengths_used(plan: CircuitPlan) -> list[int]:
    """Wavelengths in each step [count]."""
    return [int(plan.rounds(i)[0].wavelength_lo.max()) + 1 for i in range(plan.schedule.num_steps)]


def by_hand(where: Fabric, *steps: tuple[list[int], list[int]]) -> Schedule:
    """A schedule of the given senders and receivers."""
    made = [Transfers.of(src, dst, 0, 1, Op.REDUCE) for src, dst in steps]
    return Schedule("by hand", collective("all_reduce", where.num_nodes), len(made), made.__getitem__)


def optics(plan: CircuitPlan) -> list[Violation]:
    """What is wrong with the light, whatever the data do."""
    return [v for v in verify(plan).violations if v.step >= 0]


@pytest.mark.parametrize("wavelengths", [1, 3, 64])
def test_every_ring_is_verified(wavelengths: int) -> None:
    """Sizes up to 139 with the largest group and another; the judge sees every segment of every circuit."""
    sizes = [m for m in (2, 3, 4, 5, 7, 17, 64, 129) if m // 2 <= wavelengths]
    for nodes in range(1 + wavelengths % 5, 140, 5):
        size = sizes[nodes // 5 % len(sizes)]
        variant = ("optimal", "published")[nodes % 2]
        for algorithm in ("wrht", f"wrht:group_size={size},variant={variant}"):
            verdict = verify(compiled(f"terarack:nodes={nodes},wavelengths={wavelengths}", algorithm))
            assert verdict.ok, f"{algorithm}, {nodes} nodes, {wavelengths} wavelengths: {verdict}"


@pytest.mark.parametrize("size", [2, 3, 7, 16])
@pytest.mark.parametrize("nodes", [1, 31, 1000])
def test_other_group_sizes_are_verified(nodes: int, size: int) -> None:
    """Even and odd groups, primes, short last groups, with and without an exchange, on floor(m / 2) wavelengths."""
    for variant in ("optimal", "published"):
        where = f"terarack:nodes={nodes},wavelengths={size // 2}"
        verdict = verify(compiled(where, f"wrht:group_size={size},variant={variant}"))
        assert verdict.ok, f"{variant}: {verdict}"


@pytest.mark.parametrize(
    ("nodes", "wavelengths", "size", "used"),
    [
        (1024, 64, 129, [64, 8, 64]),
        (2048, 64, 129, [64, 32, 64]),
        (2838, 64, 129, [64, 61, 64]),
        (3072, 64, 129, [64, 12, 12, 64]),
        (1000, 4, 9, [4, 4, 4, 1, 4, 4, 4]),
        (1021, 8, 17, [8, 8, 2, 8, 8]),
        (4093, 16, 33, [16, 16, 2, 16, 16]),
        (1024, 64, 65, [32, 32, 32]),
        (15, 2, 5, [2, 1, 2]),
    ],
)
def test_wavelengths_of_each_step(nodes: int, wavelengths: int, size: int, used: list[int]) -> None:
    """Section 4.1: floor(m / 2) in collection, ceil(R^2 / 8) in the exchange (one fewer for odd R)."""
    plan = compiled(f"terarack:nodes={nodes},wavelengths={wavelengths}", f"wrht:group_size={size}")
    assert wavelengths_used(plan) == used
    assert verify(plan).ok


def walked(src: int, dst: int, way: int) -> list[int]:
    """Segments from a node of a hundred to another, clockwise (0) or not: each has the number of its node before clockwise."""
    if way:
        return [100 + (src - 1 - k) % 100 for k in range((src - dst) % 100)]
    return [(src + k) % 100 for k in range((dst - src) % 100)]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33, 64, 65])
def test_exchange_at_any_places(count: int) -> None:
    """Some nodes, anywhere on a ring: no clash, on exactly the wavelengths of the formula."""
    needed = exchange_wavelengths(count)
    where = fabric("terarack", nodes=100, wavelengths=needed)
    nodes = np.sort(np.random.default_rng(count).choice(100, count, replace=False))
    direction, wavelength = lap_of(count, *np.indices((count, count)))
    pairs = ~np.eye(count, dtype=bool)
    schedule = by_hand(where, (nodes[:, None], nodes[None, :]))  # type: ignore[arg-type]
    step, way = schedule.step(0), direction[pairs]
    paths = [walked(*ends) for ends in zip(step.src.tolist(), step.dst.tolist(), way.tolist(), strict=True)]
    hops = np.concatenate(paths), np.cumsum([0, *map(len, paths)])
    circuits = Circuits.of(np.arange(len(step)), step.src, step.dst, way, wavelength[pairs], 1, hops)
    assert not optics(CircuitPlan(where, schedule, lambda i: (circuits,)))
    assert int(wavelength.max()) + 1 == needed


def test_a_ring_takes_one_wavelength() -> None:
    """The paper gives each transfer one wavelength; only striping takes the 63 idle ones."""
    assert set(compiled("terarack:nodes=16", "ring").rounds(0)[0].wavelength_n) == {1}
    assert set(compiled("terarack:nodes=16,striping=yes", "ring").rounds(0)[0].wavelength_n) == {64}


def test_striping_stays_in_one_round() -> None:
    """Arcs round a circle may not fit at the width that the fullest segment allows; then they are made narrower."""
    where = fabric("terarack", nodes=5, wavelengths=5, striping=True)
    schedule = by_hand(where, (list(range(5)), [2, 3, 4, 0, 1]))
    (circuits,) = lower(where, schedule).rounds(0)
    assert not optics(lower(where, schedule))
    assert set(circuits.wavelength_n) == {
        1
    }  # 2 would load each segment with 4 of 5, yet three arcs of 2 segments need 6


def test_exchange_on_a_line() -> None:
    """R = 1 to 20 nodes of a mesh's row talk to each other on floor(R^2 / 4) wavelengths, the least there can be."""
    for count in range(2, 21):
        where = fabric("terarack_torus", shape=(1, count), wrap=False, wavelengths=count**2 // 4)
        plan = lower(where, generate("wrht", "all_reduce", where))
        assert wavelengths_used(plan) == [count**2 // 4]
        assert verify(plan).ok


def test_opposite_nodes_use_both_fibres() -> None:
    """8 nodes, each to its opposite: 2 wavelengths, as half of them go each way."""
    where = fabric("terarack", nodes=8, wavelengths=2)
    plan = lower(where, by_hand(where, (list(range(8)), [4, 5, 6, 7, 0, 1, 2, 3])))
    assert len(plan.rounds(0)) == 1
    assert not optics(plan)


def test_too_many_segments_are_refused() -> None:
    """4096 nodes, each to its opposite: 8 million lit segments."""
    with pytest.raises(UnsupportedError, match=r"fibre segments, [0-9.]+ .B; first fit is for 67.11 MB at most"):
        compiled("terarack:nodes=4096", "recursive_doubling")


def test_striped_laps_share_all_wavelengths() -> None:
    """Eight laps, a wavelength each of nine, two each of sixteen or seventeen."""
    for wavelengths, width in ((9, 1), (16, 2), (17, 2)):
        where = fabric(f"terarack:nodes=8,wavelengths={wavelengths},striping=yes")
        plan = lower(where, generate("wavelength_exchange", "all_to_all", where))
        assert plan.schedule.num_steps == 1
        (circuits,) = plan.rounds(0)
        assert set(circuits.wavelength_n.tolist()) == {width}
        assert sorted(set(circuits.wavelength_lo.tolist())) == list(range(0, 8 * width, width))
        assert not optics(plan)


def test_intervals_of_a_line_are_symmetric() -> None:
    """To the right clockwise, to the left the other way, on the same wavelength."""
    for count in (2, 3, 6):
        direction, wavelength = exchange_on_line(count)
        one, other = np.triu_indices(count, 1)
        assert (direction[one, other] == 0).all()
        assert (direction[other, one] == 1).all()
        assert np.array_equal(wavelength, wavelength.T)


@pytest.mark.parametrize(
    ("where", "algorithm", "name", "circuits"),
    [
        ("terarack:nodes=12,wavelengths=8", "circulant_rings:radices=3x4", "all_gather", 4 * 12),
        ("terarack:nodes=12,wavelengths=9", "hub_chains", "broadcast", 11),
        ("terarack:nodes=12,wavelengths=9", "hub_chains:radices=3x4", "broadcast", 11),
        ("terarack:nodes=16,wavelengths=9", "hub_chains:radices=4x4", "reduce", 15),
        ("terarack:nodes=9,wavelengths=9", "standing_tree", "broadcast", 8),
        ("terarack:nodes=9,wavelengths=9", "standing_tree", "reduce", 8),
        ("terarack:nodes=30,wavelengths=32", "rails:radix=2,groups=5", "all_reduce", 2 * 30 + 2 * (2 * 12 + 2 * 3)),
        ("terarack:nodes=45,wavelengths=64", "rails:radix=3,groups=5", "all_reduce", 2 * 45 + 3 * (2 * 12 + 2 * 3)),
    ],
)
def test_circuits_that_stand(where: str, algorithm: str, name: str, circuits: int) -> None:
    """Two rings of a level, a link of each node to its hub, edges of a tree, short rings, trees and rings of rails.

    Args:
        where: fabric.
        algorithm: with closed forms.
        name: of the collective.
        circuits: that stand [count].
    """
    plan = compiled(where, algorithm, name)
    assert verify(plan).ok
    for i in range(plan.schedule.num_steps):
        (light,) = plan.rounds(i)
        assert len(light) == circuits
        assert len(set(zip(light.src.tolist(), light.dst.tolist(), light.port.tolist(), strict=True))) == circuits


@pytest.mark.parametrize("wavelengths", [8, 9])
def test_levels_share_all_wavelengths(wavelengths: int) -> None:
    """Chains of two levels: half of the wavelengths each, one more for the first where the number is odd."""
    (light,) = compiled(f"terarack:nodes=12,wavelengths={wavelengths}", "hub_chains:radices=3x4", "broadcast").rounds(0)
    assert set(light.wavelength_n.tolist()) == {wavelengths - 4, 4}
    assert {(lo, n) for lo, n in zip(light.wavelength_lo.tolist(), light.wavelength_n.tolist(), strict=True)} == {
        (0, wavelengths - 4),
        (wavelengths - 4, 4),
    }


def test_striped_groups_use_all_wavelengths() -> None:
    """A step of WRHT that needs two of five wavelengths gives each transfer two, one that needs one all five; so on a torus."""
    plan = compiled("terarack:nodes=15,wavelengths=5,striping=yes", "wrht:group_size=5")
    assert verify(plan).ok
    assert [set(plan.rounds(i)[0].wavelength_n.tolist()) for i in range(3)] == [{2}, {5}, {2}]
    assert [set(plan.rounds(i)[0].wavelength_lo.tolist()) for i in range(3)] == [{0, 2}, {0}, {0, 2}]
    ring = compiled("terarack_torus:shape=1x4,wavelengths=5,striping=yes", "ring")
    assert set(ring.rounds(0)[0].wavelength_n.tolist()) == {5}
    assert verify(compiled("terarack_torus:shape=5x4,wavelengths=4", "wrht")).ok


def test_first_fit_has_no_round_without_circuits() -> None:
    """Three transfers over one segment, on one wavelength."""
    where = fabric("terarack:nodes=8,wavelengths=1")
    plan = lower(where, by_hand(where, ([0, 1, 2], [3, 4, 5])))
    assert [len(circuits) for circuits in plan.rounds(0)] == [1, 1, 1]


@pytest.mark.parametrize(
    ("where", "algorithm", "name", "most"),
    [
        ("terarack:nodes=6,wavelengths=4,failed=comb_laser:0", "ring", "all_gather", 1),
        ("terarack:nodes=6,wavelengths=4,striping=yes,failed=comb_laser:0", "ring", "all_gather", 4),
        ("terarack:nodes=6,wavelengths=6,failed=modulator:0", "hub_chains:radices=6", "broadcast", 6),
    ],
)
def test_transfers_are_as_wide_around_a_failed_part(where: str, algorithm: str, name: str, most: int) -> None:
    """A wavelength each, or all that work, where circuits are striped or stand.

    Args:
        where: fabric.
        algorithm: of the collective.
        name: of the collective.
        most: wavelengths of a transfer that the part does not touch [count].
    """
    plan = compiled(where, algorithm, name)
    assert verify(plan).ok
    width = np.zeros(len(plan.schedule.step(0)), np.int64)
    for circuits in plan.rounds(0):
        light = circuits.carrying()
        np.add.at(width, light.transfer, light.wavelength_n)
    assert width.max() == most
    assert width.min() >= most - 1
