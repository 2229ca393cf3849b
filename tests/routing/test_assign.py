"""First fit, compared with a plain loop over sets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.routing.assign import first_fit, width_that_fits


def plain_first_fit(paths, num_colours, width):
    """The same by dictionaries."""
    colour, round_of, waiting, number = {}, {}, list(range(len(paths))), 0
    while waiting:
        taken, left = set(), []
        for i in waiting:
            for c in range(num_colours - width + 1):
                window = {(r, k) for r in paths[i] for k in range(c, c + width)}
                if not window & taken:
                    taken |= window
                    colour[i], round_of[i] = c, number
                    break
            else:
                left.append(i)
        waiting, number = left, number + 1
    return [colour[i] for i in range(len(paths))], [round_of[i] for i in range(len(paths))]


@examples(100)
@given(
    st.lists(st.sets(st.integers(0, 7), min_size=1, max_size=5), min_size=1, max_size=25),
    st.sampled_from([1, 3, 64, 65, 130]),
    st.integers(1, 3),
)
def test_first_fit_is_first_fit(paths, num_colours, width):
    """The same colours and rounds as the plain loop, also across words of 64 colours."""
    width = min(width, num_colours)
    paths = [sorted(p) for p in paths]
    offsets = np.cumsum([0] + [len(p) for p in paths])
    found = first_fit(np.concatenate(paths), offsets, 8, num_colours, width)
    assert [f.tolist() for f in found] == list(map(list, plain_first_fit(paths, num_colours, width)))


@pytest.mark.parametrize(("load", "colours", "width"), [(1, 64, 64), (3, 16, 5), (20, 16, 1), (4, 16, 4)])
def test_the_width_that_fits(load, colours, width):
    """Colours shared evenly by the busiest resource, at least one each."""
    resources = np.zeros(load, np.int64)
    assert width_that_fits(resources, 1, colours) == width
