"""Colours as hashes beside colours that are texts of everything they stand for."""

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.simulate import _colour_kernels as kernels

BITS = np.array([0, *(1 << bit for bit in range(64))], np.uint64)
"""Words that differ in one bit or two."""


@pytest.fixture(autouse=True)
def _plainly():
    """Sums and products are those of 64 bits."""
    with interpreted(kernels), np.errstate(over="ignore"):
        yield


def classes(colours):
    """The first row of the colour of each row."""
    first = {}
    return [first.setdefault(colour, row) for row, colour in enumerate(colours)]


def test_the_hash_is_splitmix64():
    """The first numbers of the generator that Vigna publishes, for the seeds 0 and 1234567."""
    assert int(kernels._mix(np.uint64(0))) == 0xE220A8397B1DCDAF
    assert int(kernels._mix(np.uint64(1234567))) == 6457827717110365317


def test_flows_of_other_bytes_or_another_delay_have_another_colour():
    """Also where these differ in one bit, or are exchanged."""
    amount, delay = np.repeat(BITS, len(BITS)), np.tile(BITS, len(BITS))
    assert len(set(kernels.first_colours(amount, delay).tolist())) == len(amount)
    assert len(set(kernels.first_colours(BITS[[1, 1, 2]], BITS[[3, 3, 3]]).tolist())) == 2


def test_links_and_flows_that_meet_nothing_keep_their_colours_apart():
    """Also those that differ in one bit."""
    flows, links = BITS.copy(), BITS.copy()
    kernels.refine(np.zeros(len(BITS) + 1, np.int64), np.zeros(0, np.int64), flows, links)
    assert len(set(flows.tolist())) == len(set(links.tolist())) == len(BITS)


@pytest.mark.parametrize("seed", range(6))
def test_rounds_of_refinement(seed):
    """A link by its colour and those of its flows, then a flow by its colour and those of its links, in any order."""
    draw = np.random.default_rng(seed)
    length = draw.integers(0, 4, 12)
    offsets, hops = np.concatenate([[0], np.cumsum(length)]), draw.integers(0, 8, length.sum())
    flows, links = draw.integers(0, 2, 12).astype(np.uint64), draw.integers(0, 2, 8).astype(np.uint64)
    flow_text, link_text = [str(f) for f in flows], [str(link) for link in links]
    for _ in range(3):
        kernels.refine(offsets, hops, flows, links)
        path = [hops[offsets[f] : offsets[f + 1]].tolist() for f in range(12)]
        link_text = [
            f"<{text}: {sorted(flow_text[f] for f in range(12) for h in path[f] if h == link)}>"
            for link, text in enumerate(link_text)
        ]
        flow_text = [f"({text}: {sorted(link_text[h] for h in path[f])})" for f, text in enumerate(flow_text)]
        assert classes(links.tolist()) == classes(link_text)
        assert classes(flows.tolist()) == classes(flow_text)
