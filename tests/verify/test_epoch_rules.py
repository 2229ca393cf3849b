"""Rules of epochs one by one, on a machine of four nodes that send and receive on two wavelengths."""

from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.ir import Circuits, Op, Resource, Transfers, Usage, Violation
from opticcl.ir.epochs import EpochGrants, EpochRequest
from opticcl.verify.time import epochs
from opticcl.verify.time.epochs import EpochJudge

SENDERS, RECEIVERS = Resource("tx_port", 4, per_wavelength=False), Resource("photodiode", 4)


class Machine(SimpleNamespace):
    """Four nodes; a sender has one circuit, a receiver one on each wavelength."""

    num_machine_nodes, num_wavelengths = 4, 2

    def usage(self, circuits):
        """Of senders and receivers."""
        yield Usage(SENDERS, circuits.src)
        yield Usage(RECEIVERS, circuits.dst)


def request(*rows):
    """Flows (src, dst, cells, arrival)."""
    return EpochRequest(*np.array(rows, np.int32).reshape(-1, 4).T)


def granted(*rows):
    """Grants (src, dst, cells, arrival)."""
    src, dst, cells, arrival = np.array(rows, np.int32).reshape(-1, 4).T
    none = np.zeros(0, np.int32)
    return EpochGrants(src, dst, 0 * src, cells, arrival, none, none, none)


def lit(*rows):
    """Circuits (transfer, src, dst, wavelength) of a slot."""
    transfer, src, dst, wavelength = np.array(rows, np.int64).reshape(-1, 4).T
    return Circuits.of(transfer, src, dst, 0, wavelength)


@pytest.fixture
def slots_seen(monkeypatch):
    """Transfers and circuits of the slots that were judged; none is wrong."""
    seen = []
    monkeypatch.setattr(epochs, "check_slot", lambda fabric, *given: seen.append(given) or iter(()))
    return seen


def judge(lead=1, follows=True, candidates=None):
    """Of the machine."""
    return EpochJudge(Machine(), lead, follows, candidates)


def violations(made, offered=0, sent=0, pending=0):
    """Of all epochs, as (rule, epoch, slot, where, expected, found, count)."""
    found = made.end(offered, sent, pending).violations
    return [(v.rule, v.step, v.round, v.where, v.expected, v.found, v.count) for v in found]


def test_the_verdict_counts(slots_seen):
    """Epochs, circuits, cells; what was not followed is said."""
    made = judge()
    for number in range(3):
        made.epoch(number, request((0, 1, 2, -9)), granted((0, 1, 2, -9)), [lit((0, 0, 1, 0)), lit((0, 0, 1, 0))])
    verdict = made.end(9, 6, 3)
    assert (verdict.violations, verdict.transfers, verdict.circuits, verdict.chunks) == ((), 6, 6, 0)
    assert verdict.notes == ("3 epochs, every slot of each",)
    assert verdict.exhaustive
    lost = ("cells_lost", 2, -1, "all nodes", "9 = sent + pending", "6 + 2", 1)
    assert violations(made, 9, 6, 2) == [lost]
    assert judge(follows=False).end(0, 0, 0).notes == (
        "0 epochs, every slot of each; two hops: pairs are not followed",
    )
    free = judge(candidates=lambda src, dst: ()).end(0, 0, 0)
    assert free.notes == ("0 epochs, every slot of each; no request waits while its cells are free",)
    slots_seen.clear()


def test_cells_that_nobody_requested(slots_seen):
    """Of the first epoch on; those that wait stay; of two hops pairs are not followed."""
    made = judge()
    slot = [lit((0, 0, 1, 0), (1, 2, 3, 0))]
    made.epoch(0, request((0, 1, 5, -9), (2, 3, 1, -9)), granted((0, 1, 2, -9), (2, 3, 1, -9)), slot)
    made.epoch(1, request(), granted((0, 1, 3, -9)), slot)
    assert violations(made) == []
    made.epoch(2, request(), granted((0, 1, 2, -9), (3, 2, 4, -9)), slot)
    assert violations(made) == [("grant_unrequested", 2, -1, "0 -> 1", "cells that are waiting", "2 more", 2)]
    made = judge(follows=False)
    made.epoch(0, request(), granted((0, 1, 2, 99)), slot)
    assert violations(made) == []
    assert len(slots_seen) == 4


@pytest.mark.parametrize(
    ("lead", "epoch", "grant", "due", "early"),
    [
        (1, 0, -1, -1, False),
        (1, 0, 0, -1, True),
        (1, 0, -1, 0, True),
        (2, 3, 3, 3, False),
        (2, 3, 4, 3, True),
        (2, 3, 3, 4, True),
        (0, 3, 7, 7, False),
        (0, 3, 8, 7, True),
    ],
)
def test_cells_whose_requests_cannot_be_known(slots_seen, lead, epoch, grant, due, early):
    """Two slots an epoch: a request of an epoch is known so many epochs later."""
    made = judge(lead)
    slots = [lit((0, 0, 1, 0), (1, 0, 2, 1))] * 2
    made.epoch(epoch, request((0, 1, 1, due), (0, 2, 1, -5)), granted((0, 2, 1, -5), (0, 1, 1, grant)), slots)
    known = 2 * (epoch - lead + 1)
    all_early = due >= known
    where, slot = ("0 -> 2", -5) if all_early else ("0 -> 1", grant)
    told = ("grant_too_early", epoch, -1, where, f"arrival before slot {known}", f"slot {slot}", 1 + all_early)
    assert violations(made) == [told] * early
    assert len(slots_seen) == 2


def test_epochs_without_requests(slots_seen):
    """Cells of an earlier epoch are sent; no request is none that came too early."""
    made = judge()
    made.epoch(0, request((0, 1, 1, -1)), granted(), [lit((0, 0, 1, 0))])
    made.epoch(1, request(), granted((0, 1, 1, 0)), [lit((0, 0, 1, 0))])
    assert violations(made) == []
    assert len(slots_seen) == 2


def test_grants_without_circuits(slots_seen):
    """The first is named; idle circuits and rows that do not exist carry none."""
    for other in (-1, 5):
        made = judge(follows=False)
        made.epoch(
            4, request(), granted((0, 1, 1, 0), (1, 2, 1, 0), (2, 3, 1, 0)), [lit((0, 0, 1, 0)), lit((other, 2, 3, 0))]
        )
        assert violations(made) == [("transfer_not_carried", 4, -1, "1 -> 2", "a circuit", "none", 1)]
    assert len(slots_seen) == 4


def test_as_many_violations_as_are_named(slots_seen):
    """Twenty; those that follow are left out."""
    made = judge(follows=False)
    for number in range(25):
        made.epoch(number, request(), granted((0, 1, 1, 0)), [lit()])
    assert [one[1] for one in violations(made)] == list(range(20))


# --- pairs that wait, and light that is not this traffic's --------------------------------------------------------------


def on_either_wavelength(src, dst):
    """Circuits that could carry a cell of each pair; the port has the number of the wavelength."""
    return [Circuits.of(range(len(src)), src, dst, wavelength, wavelength) for wavelength in (0, 1)]


FULL = ((2, 1, 0), (3, 1, 1))
"""Receiver 1 takes both wavelengths."""


@pytest.mark.parametrize(
    ("waiting", "slots", "found"),
    [
        ([(0, 1, 3)], [(), ()], [(0, "0 -> 1 on port 0", 3, 1)]),
        ([(0, 1, 3)], [[(0, 2, 0)], ()], [(1, "0 -> 1 on port 0", 3, 1)]),
        ([(0, 1, 3)], [[(0, 2, 0)], FULL], []),
        ([(0, 1, 3)], [FULL, [(2, 1, 0), (3, 2, 1)]], [(1, "0 -> 1 on port 1", 3, 1)]),
        ([(0, 1, 3), (2, 3, 6)], [(), ()], [(0, "0 -> 1 on port 0", 3, 2)]),
        ([(0, 1, 3), (2, 3, 6)], [[(0, 2, 0)], ()], [(0, "2 -> 3 on port 0", 6, 1)]),
        ([(0, 1, 4), (2, 0, 5), (3, 2, 7)], [[(0, 3, 0), (2, 3, 1)]], [(0, "3 -> 2 on port 0", 7, 1)]),
        ([(0, 1, 4), (1, 2, 5), (2, 3, 6), (3, 0, 7)], [[(0, 1, 0), (1, 2, 0), (2, 3, 0)]], [(0, "3 -> 0 on port 0", 7, 1)]),
        ([], [(), ()], []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ours", [slice(None), slice(0), slice(1, None), slice(1)])
def test_pairs_that_wait_in_vain(slots_seen, monkeypatch, waiting, slots, found, ours):
    """The first pair, slot and circuit that are free, beside this traffic and other light; pairs are taken two at a time."""
    monkeypatch.setattr(epochs, "MOST_CANDIDATES", 2)
    made = judge(candidates=on_either_wavelength)
    stands = [[(-1, *row) for row in slot] for slot in slots]
    mine = [lit(*rows[ours]) for rows in stands]
    nothing = Transfers.of([], [], [], [], [])
    others = [(nothing, lit(*(row for row in rows if row not in rows[ours]))) for rows in stands]
    reserved = others if ours != slice(None) else None
    made.epoch(3, request(*((*row, -9) for row in waiting)), granted(), mine, reserved)
    assert violations(made) == [
        ("cells_not_released", 3, slot, where, "a circuit, since its cells are free", f"{cells} cells that wait", count)
        for slot, where, cells, count in found
    ]
    assert len(slots_seen) == len(slots)


def test_pairs_whose_cells_are_sent_wait_no_more(slots_seen):
    """Though their cells of the second slot are free."""
    made = judge(candidates=on_either_wavelength)
    made.epoch(0, request((0, 1, 1, -9)), granted((0, 1, 1, -9)), [lit((0, 0, 1, 0)), lit()])
    assert violations(made) == []
    assert len(slots_seen) == 2


def test_other_light_is_judged_with_this_traffic(slots_seen):
    """Its transfers are behind the grants, and so are its chunks; idle circuits stay idle; it is not counted."""
    made = judge(follows=False)
    ours = lit((0, 0, 1, 0), (1, 2, 3, 0))
    carried = Transfers.of([1, 3], [2, 0], [5, 6], [2, 1], [Op.COPY, Op.REDUCE], parts=[2, 3])
    other = carried, lit((-1, 1, 2, 1), (1, 3, 0, 1), (0, 1, 2, 0))
    made.epoch(0, request(), granted((0, 1, 1, -9), (2, 3, 1, -9)), [ours, ours], [other, (carried, lit())])
    (both, light), (alone, own) = slots_seen
    for transfers, n in ((both, 4), (alone, 2)):
        assert transfers.src.tolist() == [0, 2, 1, 3][:n]
        assert transfers.dst.tolist() == [1, 3, 2, 0][:n]
        assert transfers.chunk_lo.tolist() == [0, 1, 7, 8][:n]
        assert transfers.chunk_n.tolist() == [1, 1, 2, 1][:n]
        assert transfers.op.tolist() == [Op.MOVE, Op.MOVE, Op.COPY, Op.REDUCE][:n]
        assert transfers.parts is None
    assert light.transfer.tolist() == [0, 1, -1, 3, 2]
    assert light.src.tolist() == [0, 2, 1, 3, 1]
    assert light.wavelength_lo.tolist() == [0, 0, 1, 1, 0]
    assert own.transfer.tolist() == [0, 1]
    assert made.end(0, 0, 0).circuits == 4


def test_what_the_law_of_light_finds_has_its_slot(monkeypatch):
    """And its epoch."""
    wrong = Violation("wavelength_clash", 0, 0, "photodiode 1", "1", "2", 1)
    monkeypatch.setattr(epochs, "check_slot", lambda fabric, transfers, circuits: iter((wrong,) * len(circuits)))
    made = judge(follows=False)
    made.epoch(5, request(), granted((0, 1, 1, -9)), [lit(), lit((0, 0, 1, 0), (0, 0, 1, 1))])
    assert violations(made) == [("wavelength_clash", 5, 1, "photodiode 1", "1", "2", 1)] * 2
