"""Loads and latencies by legs beside every route link by link."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from opticcl.fabrics import fabric
from opticcl.simulate import pieces as pieces_module
from opticcl.simulate.pieces import RouteLegs

SHAPES = ["4x3", "5", "2x4x3", "1x8"]


def routes_of(shape, factor, seed):
    """A torus, and routes on it for each leg, a few more or less."""
    where = fabric(f"torus:shape={shape}")
    count = int(factor * where.num_nodes * sum(map(int, shape.split("x"))))
    return where, *np.random.default_rng(seed).integers(0, where.num_nodes, (2, count))


def links_of(where, src, dst):
    """Links of every route, a list each."""
    hops, offsets = where.route(src, dst)
    return [hops[begin:end].tolist() for begin, end in pairwise(offsets)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [0.5, 1, 1.5])
def test_loads_are_those_of_all_links_of_all_routes(shape, factor):
    """Whether every route has its own legs or all of them share those of the machine."""
    where, src, dst = routes_of(shape, factor, 1)
    amount = np.random.default_rng(2).integers(0, 1 << 40, len(src))
    due = np.zeros(len(where.lines))
    for links, carried in zip(links_of(where, src, dst), amount.tolist(), strict=True):
        due[links] += carried
    assert RouteLegs(where, src, dst).loads(amount).tolist() == due.tolist()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [0.5, 1.5])
@pytest.mark.parametrize("longest", [2, 9])
def test_the_longest_route_is_the_largest_sum_of_its_links(monkeypatch, shape, factor, longest):
    """Only routes that take longest are evaluated link by link, and no more of them than are allowed."""
    monkeypatch.setattr(pieces_module, "LONGEST", longest)
    where, src, dst = routes_of(shape, factor, 3)
    seconds = np.random.default_rng(4).integers(1, longest, len(where.lines)) * 2.0**-30
    of_routes = np.array([sum(seconds[links]) for links in links_of(where, src, dst)])
    due = np.column_stack([src, dst])[of_routes == max(of_routes)].tolist()
    evaluated = []

    def longest_s(circuits):
        evaluated.extend(np.column_stack([circuits.src, circuits.dst]).tolist())
        assert circuits.transfer.tolist() == list(range(len(circuits)))
        return max(sum(seconds[circuits.path(i)]) for i in range(len(circuits)))

    law = SimpleNamespace(base_s=7.0, of_hops=lambda hops: seconds[hops], longest_s=longest_s)
    assert RouteLegs(where, src, dst).longest_s(law) == max(of_routes)
    assert evaluated == due[:longest]
    assert len(due) > 2 or longest == 9


def test_routes_without_latency_of_links_take_the_base():
    """No route, or hops that add nothing."""
    where, src, dst = routes_of("4x3", 0.5, 5)
    law = SimpleNamespace(base_s=7.0, of_hops=lambda hops: np.ones(len(hops)))
    assert RouteLegs(where, src[:0], dst[:0]).longest_s(law) == 7.0
    law.of_hops = lambda hops: None
    assert RouteLegs(where, src, dst).longest_s(law) == 7.0
