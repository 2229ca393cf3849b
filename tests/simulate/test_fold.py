"""Equal circuits followed once: ranks, resources and devices beside their definition, and what is refused."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Op, Resource, Transfers, Usage
from opticcl.ir.device import Device, SettingUse
from opticcl.simulate import _fold as fold_module
from opticcl.simulate._fold import StepToFold, fold

RANKS, WAVELENGTHS = 6, 3


def machine(**changed):
    """Ports of senders and receivers, a fibre for two senders, and what is not followed; a switch of each end."""
    port, fibre = Resource("tx_port", RANKS, per_wavelength=False), Resource("fibre", RANKS)
    lanes = replace(port, kind="rx_port")
    shared, fixed = replace(port, kind="link", shared=True), replace(port, kind="subnet", once_per_job=True)
    switches = Device("input", RANKS), Device("output", RANKS), Device("fixed", 1, once_per_job=True)

    def usage(circuits):
        yield Usage(shared, circuits.src * 0)
        yield Usage(port, circuits.src)
        yield Usage(fixed, circuits.dst * 0)
        yield Usage(lanes, circuits.dst)
        yield Usage(fibre, circuits.src // 2)

    def settings(circuits):
        yield SettingUse("output", circuits.dst, circuits.wavelength_lo)
        yield SettingUse("fixed", circuits.dst * 0, circuits.src)
        yield SettingUse("input", circuits.src, circuits.port)

    given_members = {"usage": usage, "settings": settings, "devices": switches, "num_wavelengths": WAVELENGTHS}
    return SimpleNamespace(**{**given_members, **changed})


@st.composite
def steps_to_fold(draw):
    """Steps of few rounds, in each of which most ranks do the same: two senders share a fibre, and begin and end together."""
    steps = []
    for _ in range(draw(st.integers(1, 3))):
        rounds = draw(st.sampled_from([1, 1, 2]))
        few = st.lists(st.sampled_from([0, 0, 0, 0, 0, 1]), min_size=RANKS, max_size=RANKS)
        rows, taken = [], set()
        for _ in range(draw(st.integers(1, 3))):  # some shifts; no rank receives twice
            shift, late_by, left_out = draw(st.integers(1, RANKS - 1)), draw(few), draw(few)
            chunk, more = draw(few), draw(few)
            for s in range(RANKS):
                d = (s + shift) % RANKS
                if not left_out[s] and d not in taken:
                    taken.add(d)
                    rows.append((s, d, (late_by[s] + len(taken) // 4) % rounds, 3 * chunk[s], 1 + more[s]))
        src, dst, of_round, lo, n = np.array(rows, int).reshape(-1, 5).T
        tables = (np.array(draw(few)) for _ in range(4))
        item, late, lasts, setting = (np.stack([table, 1 - table]) for table in tables)
        for table in (item, late, lasts):
            table[:, 1::2] = table[:, ::2]
        listed = []
        for r in range(rounds):
            mine = np.flatnonzero(of_round == r)
            mine = np.repeat(mine, draw(st.sampled_from([1, 1, 2])))
            if draw(st.booleans()):
                mine = mine[::-1]
            s = src[mine]
            listed.append((r, Circuits.of(mine, s, dst[mine], setting[r][s], r)))
        apart = draw(st.one_of(st.none(), few.map(lambda table, s=src: 1 + np.array(table)[s])))
        steps.append(
            StepToFold(
                Transfers.of(src, dst, lo, n, Op.COPY, None, apart),
                tuple(c for _, c in listed),
                tuple(item[r][c.src] for r, c in listed),
                tuple(1e-6 * late[r][c.src] for r, c in listed),
                tuple(1.0 + lasts[r][c.src] for r, c in listed),
                tuple(np.zeros(len(c)) for _, c in listed),
            )
        )
    return steps


def by_definition(steps):
    """(class of each rank, of each part (kind, number), of each device, (label, chunks) of the transfers of each step).

    A class is what a rank, a part or a device meets in all steps, written out.
    """
    ranks, parts, devices, labels = {r: [] for r in range(RANKS)}, {}, {}, []
    for k, step in enumerate(steps):
        t, of_transfer = step.transfers, {}
        for r, c in enumerate(step.rounds):
            times = (column.tolist() for column in (step.items[r], step.latency_s[r], step.duration_s[r]))
            of_round = list(zip([r] * len(c), *times, strict=True))
            of_transfer |= dict(zip(c.transfer.tolist(), of_round, strict=True))
            for i, label in enumerate(of_round):
                s, d, low, port = (int(x[i]) for x in (c.src, c.dst, c.wavelength_lo, c.port))
                for part in (("tx", s), ("rx", d), ("fibre", s // 2, low)):
                    parts.setdefault(part, {})[k, r] = label
                devices.setdefault(("output", d), {})[k, r] = label, low
                devices.setdefault(("input", s), {})[k, r] = label, port
        step_of = [1] * len(t) if t.chunk_step is None else t.chunk_step.tolist()
        sent = list(
            zip(map(of_transfer.get, range(len(t))), t.chunk_lo.tolist(), t.chunk_n.tolist(), step_of, strict=True)
        )
        for rank in range(RANKS):
            leaves = frozenset(what for what, s in zip(sent, t.src.tolist(), strict=True) if s == rank)
            comes = frozenset(what for what, d in zip(sent, t.dst.tolist(), strict=True) if d == rank)
            ranks[rank].append((leaves, comes))
        labels.append(sent)
    return (
        {rank: tuple(met) for rank, met in ranks.items()},
        {part: (part[0], tuple(sorted(met.items()))) for part, met in parts.items()},
        {device: (device[0], tuple(sorted(met.items()))) for device, met in devices.items()},
        labels,
    )


@examples(40)
@given(steps_to_fold())
def test_one_of_each_kind_is_left(steps):
    """The first circuit of each kind, with the classes of its ranks, parts and devices, numbered over all steps."""
    found = fold(machine(), RANKS, steps)
    ranks, parts, devices, labels = by_definition(steps)
    assert (found.num_ranks, found.num_units, found.num_members) == tuple(
        len(set(classes.values())) for classes in (ranks, parts, devices)
    )
    numbers = {}  # (what, class) -> number, and back

    def same(what, of_class, number):
        assert numbers.setdefault((what, of_class), int(number)) == number
        assert numbers.setdefault((what, "back", int(number)), of_class) == of_class

    for step, one, sent in zip(steps, found.steps, labels, strict=True):
        t = step.transfers
        kind = [
            (sent[i], ranks[s], ranks[d]) for i, (s, d) in enumerate(zip(t.src.tolist(), t.dst.tolist(), strict=True))
        ]
        assert len(one.transfers) == len(set(kind))
        for r, c in enumerate(step.rounds):
            kinds, due = set(), []
            ends = (column.tolist() for column in (c.transfer, c.src, c.dst, c.wavelength_lo))
            for i, (transfer, s, d, low) in enumerate(zip(*ends, strict=True)):
                mine = (
                    kind[transfer], parts["tx", s], parts["rx", d], parts["fibre", s // 2, low],
                    devices["output", d], devices["input", s],
                )  # fmt: skip
                if mine not in kinds:
                    due.append((i, mine))
                kinds.add(mine)
            assert one.rows[r].tolist() == [i for i, _ in due]
            for at, (i, mine) in enumerate(due):
                transfer, kept = int(c.transfer[i]), int(one.transfer[r][at])
                same("rank", mine[0][1], one.transfers.src[kept])
                same("rank", mine[0][2], one.transfers.dst[kept])
                for name in ("chunk_lo", "chunk_n", "op") + ("chunk_step",) * (t.chunk_step is not None):
                    assert getattr(one.transfers, name)[kept] == getattr(t, name)[transfer]
                for of_class, number in zip(mine[1:4], one.units[r][at], strict=True):
                    same("part", of_class, number)
                for of_class, number in zip(mine[4:], one.members[r][at], strict=True):
                    same("device", of_class, number)


def step(rows, **changed):
    """A step of one round of transfers (src, dst), all at one time."""
    src, dst = np.array(rows).T
    n = len(rows)
    circuits = Circuits.of(np.arange(n), src, dst)
    columns = {
        "transfers": Transfers.of(src, dst, 0, 1, Op.COPY), "rounds": (circuits,), "items": (np.zeros(n, int),),
        "latency_s": (np.zeros(n),), "duration_s": (np.ones(n),), "gap_s": (np.zeros(n),),
    }  # fmt: skip
    return StepToFold(**{**columns, **changed})


def test_ranks_are_equal_in_what_they_send_and_in_what_they_receive():
    """A ring is one rank; a line has its ends, its second and its last but one; who does nothing is a class too."""
    assert fold(machine(), RANKS, [step([(r, (r + 1) % RANKS) for r in range(RANKS)])]).num_ranks == 1
    assert fold(machine(), RANKS, [step([(0, 1), (1, 2)])]).num_ranks == 4
    assert fold(machine(), RANKS, [step([(0, 1)]), step([(2, 3)])]).num_ranks == 5
    assert fold(machine(), RANKS, []) == fold_module.Folded((), 1, 0, 0)
    assert fold(machine(), 0, []).num_ranks == 0
    apart = fold(machine(), RANKS, [step([(0, 1), (2, 3)]), step([(0, 4)])])
    assert (len(apart.steps[0].transfers), len(apart.steps[1].transfers)) == (2, 1)
    assert fold(machine(), RANKS, [PAIR]).num_ranks == 3
    assert (
        fold(
            machine(), RANKS, [PAIR._replace(transfers=replace(PAIR.transfers, chunk_step=np.array([1, 2])))]
        ).num_ranks
        == 5
    )
    crossed = step([(0, 2), (0, 3), (1, 4), (1, 5)], items=(np.array([0, 1, 1, 0]),))
    bare = machine(usage=lambda circuits: iter(()), settings=lambda circuits: iter(()))
    assert fold(bare, RANKS, [crossed]).num_ranks == 3


def test_circuits_of_equal_ranks_on_unequal_parts_or_devices_are_both_left():
    """Two senders of one kind, of which one shares its fibre with a sender of the next step, or has its switch set apart."""
    two, next_to_first = step([(0, 4), (2, 5)]), step([(1, 6)])
    assert fold(machine(), 7, [two]).steps[0].rows[0].tolist() == [0]
    assert fold(machine(), 7, [two, next_to_first]).steps[0].rows[0].tolist() == [0, 1]
    turned = two._replace(rounds=(replace(two.rounds[0], port=np.array([0, 1], np.int32)),))
    assert fold(machine(), 7, [turned]).steps[0].rows[0].tolist() == [0, 1]


def test_a_step_without_transfers_and_a_round_without_circuits_divide_nothing():
    """Beside a ring of all."""
    ring = step([(r, (r + 1) % RANKS) for r in range(RANKS)])
    idle = np.zeros(0, np.int64)
    empty = step([(0, 1)])
    empty = StepToFold(
        empty.transfers.take(idle), (empty.rounds[0].take(idle),), *((column[0][:0],) for column in empty[2:])
    )
    nothing = fold(machine(), RANKS, [empty])
    assert (nothing.num_ranks, nothing.num_units, nothing.num_members) == (1, 0, 0)
    found = fold(machine(), RANKS, [empty, ring])
    assert (found.num_ranks, found.num_units, found.num_members) == (1, 3, 2)
    assert [len(one.transfers) for one in found.steps] == [0, 1]
    assert found.steps[0].units[0].shape == (0, 3)
    assert found.steps[0].members[0].shape == (0, 2)


def several(circuits):
    """A usage of several parts of a kind for a circuit."""
    yield Usage(Resource("tx_port", RANKS, per_wavelength=False), circuits.src, np.arange(len(circuits)))


def members(circuits):
    """Several devices of a kind for a circuit."""
    yield SettingUse("input", circuits.src, circuits.port, np.arange(len(circuits)))


def late(circuits):
    """A device that is set later than light starts."""
    yield SettingUse("input", circuits.src, circuits.port, None, 1e-9 * circuits.src)


PAIR = step([(0, 1), (2, 3)])
WIDE = replace(PAIR.rounds[0], wavelength_n=np.array([1, 2], np.int32))
FAN = step([(0, 1), (0, 2)])
APART = (np.arange(2),)
SAME = replace(PAIR.rounds[0], transfer=np.zeros(2, np.int32))
REFUSED = [
    (machine(), PAIR._replace(transfers=replace(PAIR.transfers, op=np.array([0, 1], np.uint8))), "sums count"),
    (machine(), PAIR._replace(transfers=replace(PAIR.transfers, parts=np.ones(2, np.int32))), "sums count"),
    (machine(), PAIR._replace(rounds=(replace(PAIR.rounds[0], transfer=np.array([-1, 0], np.int32)),)), "idle circuits"),
    (machine(), StepToFold(PAIR.transfers, *(2 * one for one in PAIR[1:])), "a transfer in several rounds"),
    (machine(), PAIR._replace(rounds=(SAME,), items=APART), "one transfer"),
    (machine(usage=several), PAIR, "several resources"),
    (machine(), PAIR._replace(rounds=(WIDE,)), "several wavelengths"),
    (machine(settings=late), PAIR, "devices of kind input"),
    (machine(settings=members), PAIR, "devices of kind input"),
    (machine(devices=(Device("input", RANKS, pool=2), *machine().devices[1:])), PAIR, "devices of kind input"),
    (machine(), FAN._replace(items=APART), "meet at a resource"),
    (machine(usage=lambda circuits: iter(())), FAN._replace(items=APART), "meet at a device"),
    (machine(), step([(0, 2), (1, 2)], items=APART), "meet at a rank"),
]  # fmt: skip


@pytest.mark.parametrize(("where", "one", "words"), REFUSED)
def test_what_is_not_folded_is_refused(where, one, words):
    """In one line each; two circuits of one sender are no different times."""
    with pytest.raises(UnsupportedError, match=words):
        fold(where, RANKS, [one])
    assert fold(machine(), RANKS, [FAN]).num_units == 1 + 1 + 1


def test_more_kinds_than_are_followed_are_refused(monkeypatch):
    """Four pairs that begin one after the other are four kinds."""
    four = step([(0, 1), (1, 2), (2, 3), (3, 4)], items=(np.arange(4),))
    bare = machine(usage=lambda circuits: iter(()), settings=lambda circuits: iter(()))
    monkeypatch.setattr(fold_module, "MOST_KINDS", 4)
    found = fold(bare, RANKS, [four]).steps[0]
    assert len(found.transfers) == 4
    assert found.units[0].shape == found.members[0].shape == (4, 0)
    monkeypatch.setattr(fold_module, "MOST_KINDS", 3)
    with pytest.raises(UnsupportedError, match="4 kinds of transfers in a step, and at most 3"):
        fold(bare, RANKS, [four])
