"""Parts of a time by hand: sums, slots, control exchanges, and what is charged to rounds that change nothing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.simulate.plans import by_hand

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Transfers
from opticcl.simulate.parts import (
    Reconfiguration,
    busiest_sum,
    control_s,
    memory_traffic,
    same_circuits,
    slot_wait_s,
    summed_chunks,
    sums_s,
    transfer_times,
)


def test_the_busiest_sum_counts_chunks_once_and_arrivals_all():
    """Against sets of chunks; copies beside the sums count for nothing."""
    random = np.random.default_rng(3)
    for _ in range(60):
        n = int(random.integers(0, 7))
        dst, lo, count = random.integers(3, 6, n), random.integers(0, 9, n), random.integers(1, 5, n)
        op = np.where(random.random(n) < 0.7, Op.REDUCE, Op.COPY)
        arrived = {
            rank: [
                set(range(a, a + c))
                for d, a, c, o in zip(dst, lo, count, op, strict=True)
                if d == rank and o == Op.REDUCE
            ]
            for rank in range(6)
        }
        rank = max(arrived, key=lambda one: (sum(map(len, arrived[one])), -one))
        due = sum(map(len, arrived[rank])), len(set().union(*arrived[rank]))
        assert busiest_sum(Transfers.of(np.zeros(n, int), dst, lo, count, op)) == due


def test_sums_move_three_bytes_or_fewer():
    """Five arrivals for two chunks: 3 each in a chain, 5 + 2 x 2 fused; and no sums, no traffic, no time."""
    assert [memory_traffic(c, 5, 2) for c in ("chain", "fused", "none")] == [15, 9, 0]
    copies = Transfers.of([0, 1], [2, 2], [0, 0], 1, Op.COPY)
    both = Transfers.of([0, 1], [2, 2], [0, 0], 1, [Op.COPY, Op.REDUCE])
    common, none = assumptions("common"), assumptions("common", compute="none")
    assert summed_chunks(copies, common) == summed_chunks(both, none) == 0
    assert sums_s(copies, 1.0, common).tolist() == sums_s(both, 1.0, none).tolist() == [0, 0]
    assert sums_s(both, 1e12, common) == pytest.approx([0, 3e12 / common.memory_bytes_per_s])


@pytest.mark.parametrize("compute", ["fused", "chain", "none"])
def test_copies_sum_nothing(compute):
    """As ranges, or every third chunk."""
    for apart in (None, 3):
        copies = Transfers.of([0, 1], [2, 2], [0, 0], 2, Op.COPY)
        if apart:
            copies = replace(copies, chunk_step=np.full(2, apart, np.int32))
        assert summed_chunks(copies, assumptions("common", compute=compute)) == 0


def test_light_waits_for_the_next_slot():
    """Of 20 ns: not at its beginning, even where a float lies beside it; and never without slots."""
    slots, none = SimpleNamespace(slot_s=20e-9), SimpleNamespace(slot_s=0.0)
    for time_ns, due_ns in ((0, 0), (1, 19), (20, 0), (30, 10), (59, 1), (1e6, 0)):
        assert slot_wait_s(slots, time_ns * 1e-9) == pytest.approx(due_ns * 1e-9, abs=1e-15)
        assert slot_wait_s(none, time_ns * 1e-9) == 0
    assert slot_wait_s(slots, 35 * 20e-9 * (1 + 1e-15)) < 1e-20


def test_a_transfer_takes_whole_slots():
    """Three of 8 chunks of 950 bytes by one circuit are three slots; a byte more is a fourth; without slots, by the rate."""
    for slot in ("20ns", "0s"):
        where = fabric(f"ramp:groups=2,racks=1,wavelengths=2,slot={slot}")
        plan = by_hand(where, [(0, 0, 1, 0, 3, Op.COPY)])
        transfers, (circuits,) = plan.schedule.step(0), plan.rounds(0)
        lanes = int(where.wavelengths_carried(circuits).sum())
        for chunk_bytes, slots in ((950.0 * lanes, 3), (951.0 * lanes, 4), (1.0, 1)):
            rows, late, seconds = transfer_times(where, transfers, circuits, chunk_bytes, assumptions("published"))
            due = slots * 20e-9 if where.slot_s else 3 * chunk_bytes * 8 / lanes / where.rate_bits_per_s
            assert (rows.tolist(), late.tolist()) == ([0], [where.latency_s])
            assert seconds == pytest.approx([due])


def test_who_takes_part_in_a_control_exchange():
    """The ends of the transfers; where circuits are idle, those of all circuits; nobody where there are none."""
    where = SimpleNamespace(control_s=lambda src, dst: (src.tolist(), dst.tolist()), ranks_at=lambda nodes: nodes + 10)
    transfers = Transfers.of([3, 5], [4, 6], [0, 0], 1, Op.COPY)
    for carried, due in (
        ([0], ([3], [4])), ([0, 1], ([3, 5], [4, 6])), ([1, 0], ([5, 3], [6, 4])), ([0, -1], ([10, 11], [11, 12])), ([], 0),
    ):  # fmt: skip
        at = np.arange(len(carried))
        assert control_s(where, transfers, Circuits.of(np.array(carried, int), at, at + 1)) == due


def one_way(*pairs):
    """Circuits of one wavelength between pairs of nodes."""
    src, dst = np.array(pairs).T
    return Circuits.of(np.arange(len(pairs)), src, dst, 0, 0, 1)


@pytest.mark.parametrize("setting", ["on_change", "every_step"])
@pytest.mark.parametrize("control", ["on_change", "every_step"])
@pytest.mark.parametrize("initial", ["cold", "warm"])
@pytest.mark.parametrize("order", ["before_setting", "beside_setting"])
def test_what_rounds_are_charged(setting, control, initial, order):
    """Round after round: 0 -> 1 first, again, 2 -> 3 and again; on a fabric that is set in 5 us, and on one that is not."""
    assumed = assumptions(
        "common", reconfiguration_charge=setting, control_charge=control, initial=initial, control_order=order
    )
    for cost_s, exchange_s in ((5.0, 7.0), (5.0, 0.0), (0.0, 7.0), (0.0, 0.0)):
        where = SimpleNamespace(reconfiguration_s=cost_s, devices=(), links_set=lambda circuits: None)
        of_rounds, of_each = Reconfiguration(where, assumed), Reconfiguration(where, assumed)
        changes = [initial == "cold", False, True, False]
        for circuits, changed in zip([one_way((0, 1))] * 2 + [one_way((2, 3))] * 2, changes, strict=True):
            set_s = cost_s * (changed or setting == "every_step")
            exchanged = changed or control == "every_step"
            due_s = max(0.0, exchange_s * exchanged - (set_s if order == "beside_setting" else 0.0))
            assert of_rounds.of_round(circuits, exchange_s) == (set_s, due_s)
            assert of_each.changes(circuits) is changed
            assert of_each.on_change is (setting == "on_change")


def test_equal_steps_are_one_run_and_one_step_is_no_two():
    """Two rounds that replace each other; one that stands; one step alone."""
    where = SimpleNamespace(reconfiguration_s=5.0, devices=(), links_set=lambda circuits: None)
    a, b = one_way((0, 1)), one_way((1, 2))

    def runs(rounds, repeats, control=()):
        return Reconfiguration(where, assumptions("common")).of_runs(rounds, repeats, control)

    assert runs((a, b), 3) == [(3, [(5.0, 0.0), (5.0, 0.0)])]
    assert runs((a,), 3, [7.0]) == [(1, [(5.0, 7.0)]), (2, [(0.0, 0.0)])]
    assert runs((a,), 1) == [(1, [(5.0, 0.0)])]


def test_equal_rounds_have_equal_circuits():
    """As many, one by one, for equal transfers and in one order."""
    a, b = one_way((0, 1), (2, 3)), one_way((0, 1), (2, 3))
    assert same_circuits((a, b), (b, a))
    assert not same_circuits((a,), (a, b))
    assert same_circuits((a.take([0, 1]),), (b,))
    for other in (a.take([1, 0]), a.take([0]), a.carrying_others(np.array([6, 5], np.int32))):
        assert not same_circuits((a,), (other,))
        assert not same_circuits((other,), (a,))
