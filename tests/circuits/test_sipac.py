"""SiPAC's light: whole channels in closed form, and a judge who refuses every bent one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.fabrics import fabric, job
from opticcl.ir import CircuitPlan, Circuits, Fabric, Op, Schedule, Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

replace = dataclasses.replace


def _plan(**parameters: object) -> CircuitPlan:
    where = fabric("sipac", **({"radix": 3, "levels": 2} | parameters))
    return lower(where, generate("sipco", "all_reduce", where))


def _rules(plan: CircuitPlan, change: Callable[[Circuits], Circuits]) -> set[str]:
    """Rules that the judge names when every round is changed that way."""
    changed = replace(plan, rounds=lambda i: tuple(change(circuits) for circuits in plan.rounds(i)))
    return {v.rule for v in verify(changed).violations}


def test_channel_of_the_paper() -> None:
    """Section III-B: from input i to output j the lines k with k = j - i (mod r), w/r of them."""
    plan = _plan(radix=8, levels=1)
    (circuits,) = plan.rounds(0)
    assert len(circuits) == 8 * 7
    assert (circuits.wavelength_lo == (circuits.dst - circuits.src) % 8).all()
    assert (circuits.wavelength_n == 20).all()
    assert circuits.wavelength_step == 8


@pytest.mark.parametrize(("channels", "lit"), [("published", 7 / 8), ("retuned", 1), ("ring", 1)])
def test_share_of_the_comb(channels: str, lit: float) -> None:
    """B/r leaves the group dark that leads back to the sender; B/(r-1) lights all lines of every port."""
    plan = _plan(radix=8, levels=2, channels=channels)
    (circuits,) = plan.rounds(0)
    lines = np.bincount(circuits.src * 2 + circuits.port, circuits.wavelength_n)
    assert (lines == lit * plan.fabric.num_wavelengths).all()


@pytest.mark.parametrize(("channels", "sizes"), [("published", {1: 3, 2: 2, 3: 2}), ("retuned", {0: 4, 1: 3, 2: 3})])
def test_uneven_channels(channels: str, sizes: dict[int, int]) -> None:
    """Ten lines in four or three groups: some channels have one more; the plan is still right."""
    plan = _plan(radix=4, levels=1, wavelengths=10, channels=channels)
    (circuits,) = plan.rounds(0)
    assert dict(zip(circuits.wavelength_lo.tolist(), circuits.wavelength_n.tolist(), strict=True)) == sizes
    assert verify(plan).ok


@pytest.mark.parametrize("channels", ["published", "retuned"])
@pytest.mark.parametrize("wavelengths", [13, 24])
@pytest.mark.parametrize("radices", [(4, 8, 2), (3, 7), (8, 3, 5), (6, 4)])
def test_channels_of_mixed_radices(radices: tuple[int, ...], wavelengths: int, channels: str) -> None:
    """Every pair gets all lines of its group, each once, although the groups of the levels differ."""
    where = fabric("sipac", radices=radices, wavelengths=wavelengths, channels=channels)
    plan = lower(where, generate("sipco", "all_reduce", where))
    assert verify(plan).ok
    (circuits,) = plan.rounds(0)
    lit = np.zeros((where.num_nodes, where.ports_per_node, wavelengths), int)
    for row in range(len(circuits)):
        lo, n = circuits.wavelength_lo[row], circuits.wavelength_n[row]
        lines = lo + circuits.wavelength_step * np.arange(n)
        lit[circuits.src[row], circuits.port[row], lines] += 1
    for level, radix in enumerate(radices):
        dark = np.arange(wavelengths) % radix == 0 if channels == "published" else np.zeros(wavelengths, bool)
        assert (lit[:, level, ~dark] == 1).all()
        assert (lit[:, level, dark] == 0).all()


def test_channels_interleave_as_drawn() -> None:
    """4 x 8 CUs: group 1 is one circuit of every eighth line at level 1, two such circuits at level 0."""
    where = fabric("sipac", radices=(4, 8))
    (circuits,) = lower(where, generate("sipco", "all_reduce", where)).rounds(0)
    assert circuits.wavelength_step == 8
    assert (circuits.wavelength_n == 20).all()
    for dst, lowest in ((1, [1, 5]), (4, [1])):
        pair = (circuits.src == 0) & (circuits.dst == dst)
        assert circuits.wavelength_lo[pair].tolist() == lowest


def test_part_of_a_machine() -> None:
    """A job on some nodes: the light follows the nodes, not the ranks."""
    where = job(fabric("sipac", radices=(4, 3)), [11, 3, 7])  # one switch of level 1
    verdict = verify(lower(where, generate("ring", "all_reduce", where)))
    assert verdict.ok, str(verdict)
    assert reason_declined("sipco", "all_reduce", where) is None
    apart = job(fabric("sipac", radices=(4, 3)), [0, 1, 4])
    assert "not part of the sipac" in str(reason_declined("sipco", "all_reduce", apart))


def _pairwise(where: Fabric) -> Schedule:
    """All-reduce of two nodes, each chunk in a transfer of its own: every channel is asked for three times a step."""
    chunk = np.arange(6)

    def step(i: int) -> Transfers:
        src = (chunk + i) % 2
        return Transfers.of(src, 1 - src, chunk, 1, Op.REDUCE if i == 0 else Op.COPY)

    return Schedule("pairwise", collective("all_reduce", where.num_nodes, 6), 2, step)


def test_same_channel_again_takes_another_round() -> None:
    """Three transfers of a pair take three rounds of the whole channel."""
    where = fabric("sipac", radix=2, levels=1)
    plan = lower(where, _pairwise(where))
    assert [len(circuits) for circuits in plan.rounds(0)] == [2, 2, 2]
    assert all((circuits.wavelength_n == 80).all() for circuits in plan.rounds(1))
    assert verify(plan).ok


def test_circuits_of_a_channel_stay_in_one_round() -> None:
    """On 2 x 3 CUs a channel of level 0 is three circuits; all three go to the transfer's round."""
    where = fabric("sipac", radices=(2, 3))
    rounds = lower(where, _pairwise(where)).rounds(0)
    assert [circuits.transfer.tolist() for circuits in rounds] == [
        [0] * 3 + [1] * 3,
        [2] * 3 + [3] * 3,
        [4] * 3 + [5] * 3,
    ]
    assert all(circuits.wavelength_n.sum() == where.num_wavelengths for circuits in rounds)


def _ring_plan() -> CircuitPlan:
    where = fabric("sipac:radix=4,levels=2,wavelengths=8,channels=ring")
    return lower(where, generate("loop_back_rings", "all_reduce", where))


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (lambda c: replace(c, wavelength_lo=np.where(c.wavelength_lo == 0, 1, c.wavelength_lo)), {"photodiode_shared"}),
        (
            lambda c: replace(c, wavelength_lo=np.where(c.wavelength_lo == 2, 0, c.wavelength_lo)),
            {"wavelength_unheard"},
        ),
        (lambda c: c.take(c.wavelength_lo != 0), {"transfer_not_carried"}),
    ],
)
def test_mutants_of_rings_are_refused(change: Callable[[Circuits], Circuits], rules: set[str]) -> None:
    """The ring on the group of the direct channel, a direct channel on the ring's group, no ring."""
    plan = _ring_plan()
    assert verify(plan).ok
    assert rules <= _rules(plan, change)


def test_the_next_node_hears_two_groups() -> None:
    """One transfer takes both, the second of two the ring's, a third the next round; the published machine hears none of it."""
    where = fabric("sipac:radix=4,levels=1,wavelengths=8,channels=ring")
    for count, lows in ((1, [[0, 1]]), (2, [[0, 1]]), (3, [[0, 1], [0, 1]])):
        transfers = Transfers.of(np.zeros(count, int), np.ones(count, int), np.arange(count), 1, Op.COPY)
        made = Schedule("own", collective("all_gather", 4, 4), 1, lambda i, t=transfers: t)  # type: ignore[misc]
        rounds = lower(where, made).rounds(0)
        assert [sorted(c.wavelength_lo.tolist()) for c in rounds] == lows
        assert sorted(set(np.concatenate([c.transfer for c in rounds]).tolist())) == list(range(count))
    published = fabric("sipac:radix=4,levels=2,wavelengths=8")
    rules = {v.rule for v in verify(replace(_ring_plan(), fabric=published)).violations}
    assert "wavelength_unheard" in rules


def test_channels_are_not_interchangeable() -> None:
    """The published wavelengths are not heard by retuned rings."""
    plan = _plan()
    retuned = fabric("sipac", radix=3, levels=2, channels="retuned", wavelengths=plan.fabric.num_wavelengths)
    rules = {v.rule for v in verify(replace(plan, fabric=retuned)).violations}
    assert rules == {"wavelength_unheard"}


def test_the_next_node_keeps_all_lines_that_work() -> None:
    """Two groups of two lines lead to it; one modulator less leaves three lines, of one circuit or two."""
    where = fabric("sipac:radix=4,levels=1,wavelengths=8,channels=ring,failed=modulator:0")
    transfers = Transfers.of([0], [1], [0], 1, Op.COPY)
    made = Schedule("own", collective("all_gather", 4, 4), 1, lambda i: transfers)
    (circuits,) = lower(where, made).rounds(0)
    assert circuits.wavelength_n.sum() == 3
