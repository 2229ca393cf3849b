"""Waveguides that paths keep from end to end."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.routing.end_to_end import end_to_end


@st.composite
def path_sets(draw):
    """Paths over a few edges, and waveguides of which some do not work."""
    edges, waveguides = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    paths = draw(st.lists(st.sets(st.integers(0, edges - 1), min_size=1), max_size=12))
    closed = draw(st.sets(st.tuples(st.integers(0, edges - 1), st.integers(0, waveguides - 1)), max_size=4))
    works = np.ones((edges, waveguides), bool)
    for edge, waveguide in closed:
        works[edge, waveguide] = False
    return [sorted(path) for path in paths], works


@examples(60)
@given(path_sets())
def test_no_two_paths_meet(drawn):
    """In a round no edge has two paths on one waveguide; what does not work is not used; the bound holds."""
    paths, works = drawn
    hops = np.array([edge for path in paths for edge in path], np.int64)
    found = end_to_end(hops, np.cumsum([0, *map(len, paths)]), works)
    taken, rounds = set(), set()
    for path, number, waveguide in zip(paths, found.round_of.tolist(), found.waveguide.tolist(), strict=True):
        if waveguide < 0:
            assert not works[path].all(axis=0).any()
            continue
        assert works[path, waveguide].all()
        cells = {(number, edge, waveguide) for edge in path}
        assert not cells & taken
        taken |= cells
        rounds.add(number)
    assert rounds == set(range(found.num_rounds))
    if (found.waveguide >= 0).all():
        assert found.num_rounds >= found.bound


def test_paths_that_look_for_another_waveguide_find_one():
    """A grid of paths with 8 x 8 requests a side where first fit needs a third round in all orders, and two are enough."""
    random = np.random.default_rng(5)
    found_fewer = 0
    for _ in range(30):
        paths = []
        for _ in range(4):  # each colour is a perfect cover of two rows of edges by intervals
            for row in (0, 12):
                cuts = np.sort(random.choice(np.arange(1, 12), 4, replace=False))
                paths += [list(range(row + a, row + b)) for a, b in zip([0, *cuts], [*cuts, 12], strict=True)]
        hops = np.array([edge for path in paths for edge in path])
        found = end_to_end(hops, np.cumsum([0, *map(len, paths)]), np.ones((24, 2), bool))
        assert found.bound == 2
        found_fewer += found.num_rounds == 2
    assert found_fewer == 30
