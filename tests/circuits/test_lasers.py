"""Lasers of transfers on LIGHTPATH, beside what the rules say pair by pair and laser by laser."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.circuits import _lasers
from opticcl.circuits._lasers import (
    Lasers,
    PairSets,
    lasers_by_colour,
    lasers_by_number,
    lasers_by_offset,
    only_alive,
    relit,
    usable_first,
)
from opticcl.circuits._order import by_pair
from opticcl.errors import UnsupportedError
from opticcl.fabrics.damage import Damage
from opticcl.ir import Circuits, Op, Transfers

NODES = 6


def machine(lasers):
    """What the rules ask of a fabric."""
    return SimpleNamespace(num_machine_nodes=NODES, lasers_per_port=lasers)


def drawn(rng, most_transfers, most_a_pair):
    """Transfers between some pairs, in canonical order."""
    pairs = np.array(list(itertools.permutations(range(NODES), 2)))
    chosen = pairs[rng.permutation(len(pairs))[: rng.integers(1, most_transfers)]]
    src, dst = np.repeat(chosen, rng.integers(1, most_a_pair + 1, len(chosen)), axis=0).T
    size = np.full(len(src), 3) if rng.random() < 0.4 else rng.integers(1, 9, len(src))
    found = Transfers.of(src, dst, np.arange(len(src)), size, Op.COPY)
    return found.take(by_pair(found))


def in_sets(number, count, lasers):
    """First laser, width and turn of a set of lasers, as many as fit side by side."""
    width = max(1, lasers // count)
    sets = [(k * width, width) for k in range(lasers // width)]
    turn, place = divmod(number, len(sets))
    return (*sets[place], turn)


def rows_of(lasers):
    """(first laser, width, turn) of each transfer."""
    return list(zip(lasers.lo.tolist(), lasers.width.tolist(), lasers.turn.tolist(), strict=True))


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lasers", [1, 2, 3, 5, 7, 16])
def test_offsets_and_numbers_have_sets_of_their_own(lasers):
    """The digit of the receiver is higher by 1, 2, ... modulo the radix; numbers are 0, 1, ..."""
    for k, stride in ((2, 1), (3, 1), (3, 3), (4, 2), (7, 1), (12, 5)):
        pairs = [(s, s - s % (k * stride) + s % stride + d * stride) for s in range(40) for d in range(k)]
        pairs = [(s, d) for s, d in pairs if s != d]
        offsets = [(d // stride % k - s // stride % k) % k for s, d in pairs]
        transfers = Transfers.of(*np.array(pairs).T, 0, 1, Op.COPY)
        expected = [in_sets(offset - 1, k - 1, lasers) for offset in offsets]
        assert rows_of(lasers_by_offset(machine(lasers), k, stride, transfers)) == expected
        numbers = np.arange(k, dtype=np.int32)
        assert rows_of(lasers_by_number(machine(lasers), k, numbers)) == [in_sets(i, k, lasers) for i in range(k)]


def shares(sizes, width):
    """Lasers of each transfer of a pair: one, then every other goes to the first of those that would take longest."""
    own = [1] * len(sizes)
    while sum(own) < width:
        times = [size / k for size, k in zip(sizes, own, strict=True)]
        own[times.index(max(times))] += 1
    return own


def expected_places(units, width, lasers, before, many):
    """(width, place of each unit) where pairs keep their sets; None for the places where all are coloured anew."""
    known = dict(zip(before.pair.tolist(), before.place.tolist(), strict=True))
    place = [known.get(s * NODES + d, -1) for s, d in units]
    if min(place) >= 0 and many <= before.width:
        return before.width, place
    if before.width != width:
        return width, None
    for i, (s, d) in enumerate(units):
        taken = {p for (a, b), p in zip(units, place, strict=True) if p >= 0 and (a == s or b == d)}
        if place[i] < 0:
            place[i] = next((p for p in range(lasers // width) if p not in taken), None)
            if place[i] is None:
                return width, None
    return width, place


def checked(lasers, transfers, before, tables):
    """Lasers by colour are as they should be.

    Args:
        lasers: of a node.
        transfers: of the step.
        before: sets of the step before.
        tables: whether colours are those of tables, the fewest, or by first fit.
    Returns: sets of the step, whether each transfer has a set of its own, and whether the others keep their places.
    """
    pairs = list(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True))
    units = sorted(set(pairs))
    many = max(map(pairs.count, units))
    most = max(sum(u[end] == node for u in units) for end in (0, 1) for node in range(NODES))
    alone = many > max(1, lasers // most)
    if alone:
        units = pairs
        most = max(sum(u[end] == node for u in units) for end in (0, 1) for node in range(NODES))
    width, place = max(1, lasers // most), None
    if before is not None and not alone:
        width, place = expected_places(units, width, lasers, before, many)
    stands = place is not None
    if not stands and not tables:
        place = []
        for i, (s, d) in enumerate(units):
            taken = {p for (a, b), p in zip(units[:i], place, strict=True) if a == s or b == d}
            place.append(min(set(range(len(units))) - taken))
    found = lasers_by_colour(machine(lasers), transfers, before)
    at_once = lasers // width
    colour = found.turn * at_once + found.lo // width
    of_unit = colour.tolist() if alone else [colour[pairs.index(unit)] for unit in units]
    assert of_unit == place if place is not None else 0 <= min(of_unit) <= max(of_unit) < most
    for end in (0, 1):
        assert len({(unit[end], c) for unit, c in zip(units, of_unit, strict=True)}) == len(units)
    own = {unit: shares(transfers.chunk_n[[p == unit for p in pairs]].tolist(), width) for unit in units}
    for i, pair in enumerate(pairs):
        nth, mine = (0, [width]) if alone else (i - pairs.index(pair), own[pair])
        c = of_unit[i if alone else units.index(pair)]
        assert rows_of(found)[i] == (c % at_once * width + sum(mine[:nth]), mine[nth], c // at_once)
    assert (found.sets is None) == (alone or bool(found.turn.any()))
    if found.sets is not None:
        assert found.sets.pair.tolist() == [s * NODES + d for s, d in units]
        assert (found.sets.place.tolist(), found.sets.width) == (of_unit, width)
    return found.sets, alone, stands


@pytest.mark.parametrize("tables", [True, False])
def test_colours_keep_pairs_apart_and_in_their_places(monkeypatch, tables):
    """Pairs of the step before stay, others are coloured with the fewest rounds; transfers of a pair share its lasers."""
    monkeypatch.setattr(_lasers, "MOST_COLOURS", NODES * NODES**2 if tables else 0)
    seen = set()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lasers, before = int(rng.integers(1, 12)), None
        for _ in range(2):
            transfers = drawn(rng, int(rng.integers(2, 14)), int(rng.integers(1, 4)))
            some = transfers.take(np.sort(rng.permutation(len(transfers))[: len(transfers) // 2 + 1]))
            for step in (transfers, some):
                before, *how = checked(lasers, step, before, tables)
                seen.add((*how, before is None))
    assert len(seen) >= 4


def test_transfers_of_their_own_do_not_keep_a_set():
    """Three from 0 to 1 on four lasers: they would be on one of them."""
    before, alone, _ = checked(4, Transfers.of([0, 0, 0], [1, 2, 3], 0, 1, Op.COPY), None, True)
    assert not alone
    step = Transfers.of([0, 0, 0, 0], [1, 1, 1, 2], [0, 1, 2, 3], 1, Op.COPY)
    assert checked(4, step, before, True) == (None, True, False)


def test_sets_that_do_not_suffice_are_left():
    """Three transfers do not share two lasers; between two pairs with different sets none of two sets is free."""
    before, *_ = checked(4, Transfers.of([0, 0], [1, 2], 0, 1, Op.COPY), None, True)
    assert before.width == 2
    assert checked(4, Transfers.of([0, 0, 0], [1, 1, 1], [0, 1, 2], 1, Op.COPY), before, True)[0].width == 4
    before = PairSets(np.array([0 * NODES + 1, 2 * NODES + 3]), np.array([0, 1]), 2)
    assert not checked(4, Transfers.of([0, 0, 2], [1, 3, 3], 0, 1, Op.COPY), before, True)[2]


def test_sets_that_stand_are_found():
    """-1 for pairs without one, also behind the last."""
    sets = PairSets(np.array([3, 5, 9]), np.array([2, 0, 1]), 4)
    assert sets.known(np.arange(12)).tolist() == [-1, -1, -1, 2, -1, 0, -1, -1, -1, 1, -1, -1]


# --- dead lasers ------------------------------------------------------------------------------------------------------


def damaged(rng, tiles, lasers, most):
    """Some lasers and photodiodes of some tiles are dead."""
    nothing = np.zeros(0, np.int64)
    dead = [np.divmod(rng.permutation(tiles * lasers)[: rng.integers(most)], lasers) for _ in range(2)]
    return Damage(nothing, *dead[0], nothing, nothing, *dead[1])


def works(damage, sender, receiver, laser):
    """Whether a laser of one tile and the photodiode of the other do."""
    sent = set(zip(damage.laser_tile.tolist(), damage.laser.tolist(), strict=True))
    heard = set(zip(damage.photodiode_tile.tolist(), damage.photodiode.tolist(), strict=True))
    return (sender, laser) not in sent and (receiver, laser) not in heard


def test_lasers_dead_on_few_tiles_come_first():
    """Lasers and photodiodes count alike; of equals the first one comes first."""
    for seed in range(10):
        damage = damaged(np.random.default_rng(seed), NODES, 4, 12)
        dead = [*damage.laser.tolist(), *damage.photodiode.tolist()]
        assert usable_first(damage, 5).tolist() == sorted(range(5), key=dead.count)


def expected_relit(damage, transfers, tile, real, given):
    """Rows of lasers; how: as given, with two places exchanged, or in extra turns."""
    ends = [(tile[s], tile[d]) for s, d in zip(transfers.src, transfers.dst, strict=True)]

    def dark(rows):
        return [
            i
            for i, ((lo, width, _), end) in enumerate(zip(rows, ends, strict=True))
            if not any(works(damage, *end, real[k]) for k in range(lo, lo + width))
        ]

    rows = rows_of(given)
    unlit = dark(rows)
    if not unlit:
        return "given", rows
    hurt = {rows[i][0] for i in unlit}
    if all(width == 1 for _, width, _ in rows) and len(hurt) == 1:
        (one,) = hurt
        for other in range(len(real)):
            places = {one: other, other: one}
            swapped = [(places.get(lo, lo), 1, turn) for lo, _, turn in rows]
            if not dark(swapped):
                return "swapped", swapped
    last = max(turn for _, _, turn in rows)
    return "turns", [(0, len(real), last + 1) if i in unlit else row for i, row in enumerate(rows)]


def test_transfers_without_light_take_other_lasers_or_turns():
    """Those that share an end take different turns, as few as can be; nothing else changes."""
    seen = {"given": 0, "swapped": 0, "turns": 0}
    for seed in range(120):
        rng = np.random.default_rng(seed)
        lasers = int(rng.integers(2, 5))
        damage, tile, real = damaged(rng, NODES + 2, lasers, 9), rng.permutation(NODES + 2), rng.permutation(lasers)
        transfers = drawn(rng, 9, 1)
        given = lasers_by_colour(machine(lasers), transfers)
        how, expected = expected_relit(damage, transfers, tile, real, given)
        found = relit(damage, transfers, tile, real, given)
        seen[how] += 1
        unlit = [i for i, row in enumerate(expected) if how == "turns" and row != rows_of(given)[i]]
        assert [row for i, row in enumerate(rows_of(found)) if i not in unlit] == [
            row for i, row in enumerate(expected) if i not in unlit
        ]
        most = 0
        for ends in (transfers.src, transfers.dst):
            used = [(ends[i], found.turn[i]) for i in unlit]
            assert len(set(used)) == len(used)
            most = max(most, *(ends[unlit].tolist().count(node) for node in range(NODES)))
        for i in unlit:
            assert rows_of(found)[i][:2] == (0, lasers)
            assert 1 <= found.turn[i] - given.turn.max() <= most
    assert min(seen.values()) > 5


def test_circuits_keep_to_runs_of_lasers_that_work():
    """In the order of the circuits, then of the lasers; one without any is refused by its nodes."""
    refused = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        lasers = int(rng.integers(2, 7))
        damage, tile, real = damaged(rng, NODES, lasers, 3 * lasers), rng.permutation(NODES), rng.permutation(lasers)
        transfers = drawn(rng, 6, 2)
        n = len(transfers)
        lo = rng.integers(0, lasers, n)
        path = np.arange(2 * n).reshape(n, 2)
        given = Circuits.of(np.arange(n), transfers.src, transfers.dst, 0, lo, rng.integers(1, lasers - lo + 1), path)
        expected, dark = [], []
        for i, (s, d) in enumerate(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True)):
            mine = real[given.wavelength_lo[i] : given.wavelength_lo[i] + given.wavelength_n[i]].tolist()
            lit = [k for k in range(lasers) if k in mine and works(damage, tile[s], tile[d], k)]
            dark += [] if lit else [(s, d)]
            for k in lit:
                if k - 1 not in lit:
                    length = next(m for m in range(1, lasers + 2) if k + m not in lit)
                    expected.append((i, s, d, k, length, *path[i].tolist()))
        if dark:
            refused += 1
            with pytest.raises(UnsupportedError, match="from node {} to node {} ".format(*dark[0])):
                only_alive(damage, given, tile, real)
            continue
        found = only_alive(damage, given, tile, real)
        columns = (found.transfer, found.src, found.dst, found.wavelength_lo, found.wavelength_n)
        paths = [found.path(i).tolist() for i in range(len(found))]
        assert [(*row, *hops) for row, hops in zip(np.transpose(columns).tolist(), paths, strict=True)] == expected
    assert 5 < refused < 50


def test_places_of_several_lasers_are_not_exchanged():
    """One of two transfers has two dead lasers: a turn of its own, although two others would do."""
    nothing = np.zeros(0, np.int64)
    damage = Damage(nothing, np.array([0, 0]), np.array([0, 1]), nothing, nothing)
    transfers = Transfers.of([0], [1], 0, 1, Op.COPY)
    given = Lasers(np.array([0]), np.array([2]), np.array([0]))
    assert rows_of(relit(damage, transfers, np.arange(2), np.arange(4), given)) == [(0, 4, 1)]
