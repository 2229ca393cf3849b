"""Algorithm 3, as printed and corrected, and the fewest rounds."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.routing.colouring import edge_colouring
from opticcl.routing.transfer_rounds import TransferRounds, greedy_rounds, max_degree, optimal_rounds


@st.composite
def transfers(draw) -> tuple[np.ndarray, np.ndarray, int]:
    """Senders, receivers, lasers."""
    n = draw(st.integers(2, 12))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
    src, dst = np.array(draw(st.lists(ends, min_size=1, max_size=120)), np.int64).T
    return src, dst, draw(st.integers(1, 5))


def most_in_a_round(ends: np.ndarray, found: TransferRounds) -> int:
    """Most circuits of one node in one round, at that end."""
    at = ends * max(1, found.num_rounds) + found.round_of
    return int(np.bincount(at).max(initial=0))


@examples(60)
@given(transfers())
def test_both_keep_to_the_lasers_and_colouring_is_optimal(drawn: tuple[np.ndarray, np.ndarray, int]) -> None:
    """Every transfer once, no node above its lasers at either end, distinct wavelengths; ceil(most / lasers) rounds."""
    src, dst, lasers = drawn
    due = ceil(max(np.bincount(src).max(), np.bincount(dst).max()) / lasers)
    for found in (optimal_rounds(src, dst, lasers), greedy_rounds(src, dst, lasers, seed=3)):
        assert len(found.round_of) == len(found.wavelength) == len(src)
        for ends in (src, dst):
            assert most_in_a_round(ends, found) <= lasers
            at = (ends * max(1, found.num_rounds) + found.round_of) * lasers + found.wavelength
            assert len(np.unique(at)) == len(at)
        assert found.wavelength.min(initial=0) >= 0
        assert found.wavelength.max(initial=0) < lasers
        assert found.bound == due <= found.num_rounds
    assert optimal_rounds(src, dst, lasers).num_rounds == due


def test_as_printed_a_sender_is_overworked() -> None:
    """One sender, forty receivers: all at once, with sixteen lasers (appendix C counts at the receiver)."""
    src, dst = np.zeros(40, int), np.arange(1, 41)
    printed = greedy_rounds(src, dst, 16, variant="printed")
    assert printed.num_rounds == 1 < printed.bound
    assert most_in_a_round(src, printed) == 40
    assert (printed.wavelength == -1).all()
    assert greedy_rounds(src, dst, 16).num_rounds == optimal_rounds(src, dst, 16).num_rounds == 3


def test_the_greedy_wastes_rounds_where_all_talk_to_all() -> None:
    """64 nodes, 16 lasers: four rounds are enough."""
    src, dst = np.nonzero(~np.eye(64, dtype=bool))
    assert optimal_rounds(src, dst, 16).num_rounds == 4
    assert greedy_rounds(src, dst, 16).num_rounds > 4


def test_no_transfers() -> None:
    """No rounds."""
    nothing = np.zeros(0, int)
    assert optimal_rounds(nothing, nothing, 4).num_rounds == greedy_rounds(nothing, nothing, 4).num_rounds == 0
    assert max_degree(nothing, nothing) == 0


@pytest.mark.parametrize("nodes", [1, 2, 7, 16])
def test_colours_of_all_pairs(nodes: int) -> None:
    """A full bipartite graph needs as many colours as it has nodes at a side, and not more."""
    left, right = (a.ravel() for a in np.indices((nodes, nodes)))
    colour = edge_colouring(left, right, nodes, nodes)
    for ends in (left, right):
        assert len(np.unique(ends * nodes + colour)) == nodes**2
