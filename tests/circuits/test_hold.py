"""Circuits that stand all the time, by hand on a machine of four nodes, and against a count of each circuit."""

from types import SimpleNamespace

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.circuits import _hold
from opticcl.circuits._hold import hold, pairs_of, standing, union_of
from opticcl.ir import Circuits, Op, Resource, Schedule, Transfers, Usage

LASERS, PORTS = Resource("laser", 8, per_wavelength=True), Resource("tx_port", 8, per_wavelength=False, capacity=2)


def usage(circuits):
    """A laser a port and wavelength, and at most two circuits a port."""
    yield Usage(LASERS, circuits.src * 2 + circuits.port)
    some = np.arange(len(circuits))[::-1]
    yield Usage(PORTS, np.zeros(0, np.int64), np.zeros(0, np.int64))
    yield Usage(PORTS, circuits.src[some] * 2 + circuits.port[some], some)


WHERE = SimpleNamespace(reconfiguration_s=1.0, num_machine_nodes=4, ports_per_node=2, num_wavelengths=4, usage=usage)


def light(*rows, transfer=None, apart=1):
    """Circuits of (src, dst, port, first wavelength, wavelengths)."""
    columns = np.array(rows, int).reshape(-1, 5).T
    carried = np.arange(columns.shape[1]) if transfer is None else np.array(transfer)
    return Circuits.of(carried, *columns[:3], columns[3], columns[4], wavelength_step=apart)


def schedule_of(*steps):
    """Steps of pairs, each a class of its own."""
    rows = [np.array(step, int).reshape(-1, 2) for step in steps]
    transfers = [Transfers.of(*row.T, np.arange(len(row)), 1, Op.COPY) for row in rows]
    return Schedule("by hand", nothing_required(4, 8), len(steps), lambda i: transfers[i])


def rows_of(circuits):
    """(transfer, src, dst, port, first wavelength, wavelengths) of each circuit."""
    columns = (
        circuits.transfer,
        circuits.src,
        circuits.dst,
        circuits.port,
        circuits.wavelength_lo,
        circuits.wavelength_n,
    )
    return list(zip(*(column.tolist() for column in columns), strict=True))


def held(schedule, *rounds, where=WHERE):
    """Rounds of every step where those are assigned."""
    assigned = [one if isinstance(one, tuple) else (one,) for one in rounds]
    found = hold(where, schedule, lambda i, transfers: assigned[i])
    again = [found(i, schedule.step(i)) for i in range(schedule.num_steps)]
    for i, one in enumerate(again):  # a step that is asked for twice is the same
        assert list(map(rows_of, found(i, schedule.step(i)))) == list(map(rows_of, one))
    return again, assigned


FIRST, SECOND = light((0, 1, 0, 0, 1), (1, 2, 0, 0, 1)), light((0, 1, 0, 1, 2))
PAIRS, THREE = ([(0, 1), (1, 2)], [(0, 1)]), ([(0, 1), (0, 2), (1, 2)], [(0, 2), (1, 2)])


def test_circuits_of_other_steps_are_idle():
    """0 -> 1 has one wavelength, then two others: each step lights all three, and carries on its own."""
    found, _ = held(schedule_of(*PAIRS), FIRST, SECOND)
    assert [list(map(rows_of, rounds)) for rounds in found] == [
        [[(0, 0, 1, 0, 0, 1), (1, 1, 2, 0, 0, 1), (-1, 0, 1, 0, 1, 2)]],
        [[(0, 0, 1, 0, 1, 2), (-1, 0, 1, 0, 0, 1), (-1, 1, 2, 0, 0, 1)]],
    ]
    whole = light((0, 1, 0, 0, 1), (1, 2, 0, 0, 1), (0, 1, 1, 0, 1))
    found, _ = held(schedule_of(PAIRS[0], [(0, 1), (1, 2), (0, 1)], []), FIRST, whole, ())
    assert found[1][0] is whole  # nothing is idle where all carry
    assert found[2] == ()


@pytest.mark.parametrize(
    ("pairs", "rounds"),
    [
        (PAIRS, (FIRST, light((0, 1, 0, 0, 2)))),  # a wavelength twice
        (PAIRS, (FIRST, light((0, 1, 0, 0, 1)))),  # nothing changes
        (([(0, 1)], [(1, 2)]), (light((0, 1, 0, 0, 1)), light((1, 2, 0, 0, 1)))),  # the first does not join 1 and 2
        (PAIRS, (FIRST, (SECOND, light((0, 1, 1, 0, 1))))),  # two rounds
        (PAIRS, (FIRST, light((0, 1, 0, 1, 2), apart=2))),  # wavelengths two apart
        ((PAIRS[0], PAIRS[0]), (FIRST, light((0, 1, 0, 0, 2), (1, 2, 0, 1, 1)))),  # one wavelength more
        ((PAIRS[0], PAIRS[0]), (light((0, 1, 0, 0, 4), (1, 2, 0, 0, 1)), light((0, 1, 0, 1, 1), (1, 2, 0, 1, 1)))),
        (THREE, (light((0, 1, 0, 0, 1), (0, 2, 1, 0, 1), (1, 2, 0, 0, 1)), light((0, 2, 0, 0, 1), (1, 2, 0, 1, 1)))),
        ((*PAIRS, [(0, 1)]), (FIRST, SECOND, light((0, 1, 0, 3, 1)))),  # three circuits on a port for two
    ],
    ids=["clash", "same", "pairs", "rounds", "apart", "wider", "within", "receiver", "capacity"],
)
def test_what_does_not_fit_is_as_assigned(pairs, rounds):
    """The same objects, of every step."""
    found, assigned = held(schedule_of(*pairs), *rounds)
    assert all(
        one is other for mine, due in zip(found, assigned, strict=True) for one, other in zip(mine, due, strict=True)
    )


def test_a_port_may_have_two_circuits():
    """Its capacity; on the other port three in all."""
    found, _ = held(schedule_of(*PAIRS, [(0, 1)]), FIRST, SECOND, light((0, 1, 1, 3, 1)))
    assert [len(rounds[0]) for rounds in found] == [4, 4, 4]


def test_one_change_is_enough():
    """Of the first circuit, though all others stay; on another port, though nodes and wavelengths are the same."""
    for other in ((0, 1, 0, 1, 1), (0, 1, 1, 0, 1)):
        one, two = light((0, 1, 0, 0, 1)), light(other)
        found, _ = held(schedule_of([(0, 1)], [(0, 1)], [(0, 1)]), one, two, one)
        assert [len(rounds[0]) for rounds in found] == [2, 2, 2]


def test_nothing_is_held_in_vain(monkeypatch):
    """Where nothing takes time to set, in a schedule of one class, and beyond the limit."""
    schedule = schedule_of(*PAIRS)

    def assign(step, transfers):
        return (FIRST, SECOND)[step : step + 1]

    assert hold(SimpleNamespace(reconfiguration_s=0.0), schedule, assign) is assign
    assert hold(WHERE, schedule_of(PAIRS[0]), assign) is assign
    for most, idle in ((6, 1), (5, 0), (4, 0), (3, 0)):  # 2 transfers in 2 classes are 4, 3 circuits in 2 classes 6
        monkeypatch.setattr(_hold, "MOST_HELD", most)
        assert int((hold(WHERE, schedule, assign)(0, schedule.step(0))[0].transfer < 0).sum()) == idle


def test_standing_circuits_share_the_transfers_of_their_pair():
    """Whatever stands: each circuit once, as many of a pair for each of its transfers, all that are not used idle."""
    random = np.random.default_rng(5)
    for _ in range(60):
        sets = []
        for _ in range(2):
            rows = [
                (s, d, p, 0, 1)
                for s in range(4)
                for d in range(4)
                for p in range(2)
                if s != d and random.random() < 0.5
            ]
            sets.append(light(*(rows[i] for i in random.permutation(len(rows)))))
        pairs = random.integers(0, 4, (int(random.integers(0, 5)), 2))
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        transfers = Transfers.of(*pairs.T, np.arange(len(pairs)), 1, Op.COPY)
        wanted = [tuple(pair) for pair in pairs.tolist()]

        def fits(circuits, wanted=wanted):
            there = [row[1:3] for row in rows_of(circuits)]
            return all(there.count(pair) >= wanted.count(pair) for pair in wanted)

        due = next((one for one in sets if fits(one)), None)
        if due is None:
            with pytest.raises(AssertionError, match="step 3 has pairs for which no circuits stand"):
                standing(4, sets)(3, transfers)
            continue
        (found,) = standing(4, sets)(3, transfers)
        rows = rows_of(found)
        assert sorted(row[1:] for row in rows) == sorted(row[1:] for row in rows_of(due))
        carried = [row[0] for row in rows]
        used = sum(number >= 0 for number in carried)
        assert carried[:used] == sorted(carried[:used])
        assert set(carried[used:]) <= {-1}
        for number, pair in enumerate(wanted):
            mine = [row for row in rows if row[0] == number]
            has = sum(row[1:3] == pair for row in rows)
            assert all(row[1:3] == pair for row in mine)
            assert len(mine) in (has // wanted.count(pair), -(-has // wanted.count(pair)))
        assert sum(row[1:3] in wanted for row in rows) == used
        ports = [row[3] for row in rows[:used]]
        assert wanted != [rows[0][1:3]] or ports == sorted(ports)


def test_one_pair_without_circuits_among_many_is_found():
    """Wherever it is: a few are looked up first."""
    pairs = [(i, i + 1) for i in range(200)]
    every = light(*((i, j, 0, 0, 1) for i, j in pairs))
    for place in (0, 1, 99, 198, 199):
        wanted = [(place, 300) if i == place else pair for i, pair in enumerate(pairs)]
        transfers = Transfers.of(*np.array(wanted).T, 0, 1, Op.COPY)
        with pytest.raises(AssertionError):
            standing(400, [every])(0, transfers)
        twice = np.array([*pairs, pairs[place]])
        with pytest.raises(AssertionError):
            standing(400, [every])(0, Transfers.of(*twice.T, 0, 1, Op.COPY))
    (found,) = standing(400, [light(), light((0, 9, 0, 0, 1)), every])(
        0, Transfers.of(*np.array(pairs).T, 0, 1, Op.COPY)
    )
    assert found.transfer.tolist() == list(range(200))


def test_pairs_of_all_steps():
    """Each once, by sender and receiver."""
    schedule = schedule_of([(2, 1), (0, 3), (2, 1)], [(0, 3), (0, 1)], [], [(3, 0)])
    assert pairs_of(schedule, 4).tolist() == [1, 3, 9, 12]
    found = union_of(schedule, 4)
    assert list(zip(found.src.tolist(), found.dst.tolist(), strict=True)) == [(0, 1), (0, 3), (2, 1), (3, 0)]
    assert found.chunk_n.tolist() == [1] * 4
