"""Distinct pairs of sender and receiver, against sets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opticcl.pairs import Pairs, among, distinct
from tests.profiles import examples


@st.composite
def rows(draw):
    """Two lists of pairs on the same nodes; the second is often part of the first."""
    nodes = draw(st.integers(1, 12))
    pair = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    first = draw(st.lists(pair, max_size=40))
    second = draw(st.lists(st.sampled_from(first) if first else pair, max_size=20))
    return nodes, first, second + draw(st.lists(pair, max_size=1))


@examples(60)
@given(drawn=rows())
def test_pairs_are_sets(drawn):
    """Their number, the most at a node, and whether all are among others."""
    nodes, *lists = drawn
    first, second = (
        Pairs.of(np.array([s for s, _ in some], np.int32), np.array([d for _, d in some], np.int32), nodes)
        for some in lists
    )
    for found, some in ((first, set(lists[0])), (second, set(lists[1]))):
        sender = np.repeat(np.arange(nodes), np.diff(found.starts))
        assert sorted(zip(sender.tolist(), found.dst.tolist(), strict=True)) == sorted(some)
        for most, end in ((found.most_sent, 0), (found.most_received, 1)):
            ends = [pair[end] for pair in some]
            assert most == max(map(ends.count, ends), default=0)
    assert second.within(first) == (set(lists[1]) <= set(lists[0]))
    assert first.within(second) == (set(lists[0]) <= set(lists[1]))


@examples(60)
@given(st.lists(st.integers(-5, 20)), st.lists(st.integers(-5, 20)))
def test_numbers_as_sets(some, others):
    """Ascending, each once; and which are among them."""
    known = distinct(np.array(others, np.int64))
    assert known.tolist() == sorted(set(others))
    assert among(np.array(some, np.int64), known).tolist() == [one in others for one in some]


def test_nodes_that_do_not_exist_reach_no_kernel():
    """A wrong schedule is refused elsewhere; here nothing is written outside of an array."""
    assert len(Pairs.of(np.array([0, 1], np.int32), np.array([5, 0], np.int32), 2)) == 2
