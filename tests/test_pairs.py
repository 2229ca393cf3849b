"""Distinct pairs of sender and receiver, against sets."""

from collections import Counter
from operator import or_

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opticcl.ir.phases import Space
from opticcl.pairs import PairOrbits, among, distinct
from tests.profiles import examples

SPACE = Space((2, 3), np.array([3, 0, 5, 1, 2, 4]))
PAIRS = st.lists(st.permutations(range(6)).map(lambda ranks: tuple(ranks[:2])), min_size=1, max_size=6)
MOVES = st.sampled_from([(True, True), (True, False), (False, True), (False, False)])


def orbits(pairs, moves):
    """Pairs of ranks, moved so that the sender is 0 in the digits that move; and the ranks of all their images."""
    src, dst = (SPACE.digits(np.array(end)) for end in zip(*pairs, strict=True))
    begin, end = ((digits - src * moves) % (2, 3) @ SPACE.strides for digits in (src, dst))
    return PairOrbits.of(SPACE, moves, begin, end), images(begin, end, moves)


def images(begin, end, moves):
    """Pairs of ranks under every translation."""
    src, dst = SPACE.digits(begin), SPACE.digits(end)
    moved = [
        [SPACE.ranks((digits + by) % (2, 3) @ SPACE.strides).tolist() for digits in (src, dst)]
        for by in SPACE.translations(moves)
    ]
    return {pair for ends in moved for pair in zip(*ends, strict=True)}


@examples(60)
@given(PAIRS, MOVES, PAIRS, MOVES, st.booleans())
def test_orbits_of_pairs_are_sets_of_all_images(some, moves, others, other_moves, one_port):
    """Their number, partners of a rank, which are among which, and which stand beside others."""
    (one, pairs), (other, its) = orbits(some, moves), orbits(others, other_moves)
    every = tuple(map(or_, moves, other_moves))
    closed = [images(*np.divmod(each.closed(every).numbers, 6), every) for each in (one, other)]
    assert len(one) * len(SPACE.translations(moves)) == len(pairs)
    for end, column in enumerate(one.ends):
        assert max(np.bincount(column)) == max(Counter(pair[end] for pair in pairs).values())
    assert pairs <= closed[0]
    assert (closed[0] == pairs) or moves != every
    assert one.may_be_within(other) == (closed[0] <= closed[1])
    kept = closed[1]
    if one_port and moves == other_moves:
        ends = [{pair[end] for pair in pairs} for end in (0, 1)]
        kept = {pair for pair in its if pair[0] not in ends[0] and pair[1] not in ends[1]}
    beside = one.beside(other, one_port)
    assert images(*np.divmod(beside.numbers, 6), beside.moves) == kept | closed[0]


@examples(60)
@given(st.lists(st.integers(-5, 20)), st.lists(st.integers(-5, 20)))
def test_numbers_as_sets(some, others):
    """Ascending, each once; and which are among them."""
    known = distinct(np.array(others, np.int64))
    assert known.tolist() == sorted(set(others))
    assert among(np.array(some, np.int64), known).tolist() == [one in others for one in some]


@examples(60)
@given(PAIRS, MOVES)
def test_images_of_several_pairs_are_those_of_each(pairs, moves):
    """Also of one by itself, where some digit moves."""
    src, dst = map(np.array, zip(*pairs, strict=True))
    for a, b, *found in zip(src, dst, *SPACE.images_of_pairs(src, dst, moves), strict=True):
        due = images(np.array([a]), np.array([b]), moves)
        for begin, end in (found, SPACE.images(a, b, moves) if any(moves) else found):
            assert len(begin) == len(due)
            assert set(zip(begin.tolist(), end.tolist(), strict=True)) == due
