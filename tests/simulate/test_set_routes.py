"""The bound of routes that are set once a job, against all settings of small machines and a linear programme of each."""

from itertools import combinations_with_replacement, permutations, product
from math import inf, lcm

import highspy
import numpy as np
import pytest

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics.oddl import Oddl
from opticcl.simulate import lower_bound

TRANSFER_ALONE = assumptions("published", initial="warm", control="none", compute="none")


def bound_of(shape, wavelengths):
    """Lower bound of an all_to_all, in blocks of one pair over one wavelength, and what determines it."""
    machine, size = Oddl(shape=shape, wavelengths=wavelengths), 10**9
    found = lower_bound(Request("all_to_all").on(machine.num_nodes, machine.num_nodes), machine, size, TRANSFER_ALONE)
    block_s = 8 * size / machine.num_nodes / machine.nic_rate
    return found.seconds / block_s, found.name


def lines(ports):
    """Ways in which one wavelength may lead from all inputs of a switch to its outputs; one port at most leads back."""
    ways = np.array(list(permutations(range(ports))))
    return ways[(ways == np.arange(ports)).sum(1) <= 1]


def links_of(line, wavelengths):
    """Wavelengths from each port to each other, int64 (ports, ports), of ways with one row a wavelength."""
    ports = line.shape[1]
    found = np.zeros((ports, ports), np.int64)
    for way in line[:wavelengths]:
        found[np.arange(ports), way] += 1
    np.fill_diagonal(found, 0)
    return found


def least_time(nics):
    """Time of the best routes over links that stand, by linear programme; None if they do not join all nodes.

    Args: nics: wavelengths from each node to each other over its NIC of a dimension, a matrix a dimension.
    """
    n = len(nics[0])
    links = [(u, v, d, int(nic[u, v])) for d, nic in enumerate(nics) for u, v in zip(*np.nonzero(nic), strict=True)]
    rows = []
    for source in range(n):
        for node in set(range(n)) - {source}:
            into = [(source * len(links) + e, 1.0) for e, link in enumerate(links) if link[1] == node]
            out = [(source * len(links) + e, -1.0) for e, link in enumerate(links) if link[0] == node]
            rows.append(([*into, *out], 1.0, 1.0))
    for end, node, d in product((0, 1), range(n), range(len(nics))):
        used = [
            (source * len(links) + e, 1.0 / link[3])
            for source in range(n)
            for e, link in enumerate(links)
            if (link[end], link[2]) == (node, d)
        ]
        rows.append(([*used, (n * len(links), -1.0)], -inf, 0.0))
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    columns = n * len(links) + 1
    solver.addVars(columns, np.zeros(columns), np.full(columns, inf))
    solver.changeColCost(columns - 1, 1.0)
    for terms, least, most in rows:
        solver.addRow(least, most, len(terms), np.array([c for c, _ in terms]), np.array([v for _, v in terms]))
    solver.run()
    optimal = solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver.getInfo().objective_function_value if optimal else None


def cycles(way):
    """Lengths of the cycles of a permutation, sorted."""
    left, found = set(range(len(way))), []
    while left:
        at, length = left.pop(), 1
        while (at := int(way[at])) in left:
            left.remove(at)
            length += 1
        found.append(length)
    return tuple(sorted(found))


def mean_distances(links, wavelengths):
    """Sum of the distances from a node to all others, the mean of all nodes, float64 (settings,); inf if they do not join.

    Args: links: wavelengths from each port to each other, int64 (settings, ports, ports).
    """
    unit, ports = lcm(*range(1, wavelengths + 1)), links.shape[1]
    far = np.where(links > 0, unit // np.maximum(links, 1), 10**6)
    far[:, np.arange(ports), np.arange(ports)] = 0
    for middle in range(ports):
        np.minimum(far, far[:, :, middle, None] + far[:, None, middle, :], out=far)
    total = far.sum((1, 2))
    return np.where(total < 10**6, total / (unit * ports), inf)


def best_of_one_switch(ports, wavelengths):
    """Time of the best setting of one switch: all settings up to a renaming of its ports, the nearest first."""
    ways, best = lines(ports), inf
    first = {cycles(way): way for way in ways}
    for way in sorted(first.values(), key=lambda way: len(cycles(way))):
        for rest in combinations_with_replacement(range(len(ways)), wavelengths - 2):
            fixed = links_of(np.stack([way, *ways[list(rest)]]), wavelengths)
            links = np.repeat(fixed[None], len(ways), axis=0)
            np.add.at(links, (np.arange(len(ways))[:, None], np.arange(ports), ways), 1)
            links[:, np.arange(ports), np.arange(ports)] = 0
            mean = mean_distances(links, wavelengths)
            for setting in np.argsort(mean, kind="stable"):
                if mean[setting] >= best - 1e-9:
                    break
                best = min(best, least_time([links[setting]]) or inf)
    return best


@pytest.mark.parametrize(("ports", "wavelengths"), [(4, 2), (6, 2), pytest.param(6, 3, marks=pytest.mark.deep)])
def test_one_switch_in_all_settings(ports, wavelengths):
    """The bound equals the time of the best setting."""
    blocks, name = bound_of((ports,), wavelengths)
    assert blocks == pytest.approx(best_of_one_switch(ports, wavelengths), rel=1e-6)
    assert name == "routes of dimension 0, set once a job"


@pytest.mark.deep
def test_eight_ports_of_two_wavelengths():
    """No setting loads all links evenly over shortest paths: 53 hops of a quarter block, where the bound has 52."""
    best = best_of_one_switch(8, 2)
    assert best == pytest.approx(13.25)
    assert bound_of((8,), 2)[0] == pytest.approx(13, rel=1e-6)


@pytest.mark.deep
def test_two_rows_of_four_in_all_settings():
    """The best rows are set differently: pairs side by side in one, pairs two apart in the other."""
    ways, best = lines(4), inf
    rows = [links_of(np.stack(pair), 2) for pair in combinations_with_replacement(ways, 2)]
    columns = np.kron(np.array([[0, 2], [2, 0]]), np.eye(4, dtype=np.int64))
    seen = set()
    for top, bottom in combinations_with_replacement(range(len(rows)), 2):
        renamed = (
            tuple(sorted(row[np.ix_(p, p)].tobytes() for row in (rows[top], rows[bottom])))
            for p in map(list, permutations(range(4)))
        )
        if (key := min(renamed)) not in seen:
            seen.add(key)
            along = np.block([[rows[top], np.zeros((4, 4))], [np.zeros((4, 4)), rows[bottom]]])
            best = min(best, least_time([columns, along]) or inf)
    assert bound_of((2, 4), 2)[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("wavelengths", [1, 2])
def test_two_rows_of_two(wavelengths):
    """A square has one setting."""
    across = np.kron(np.array([[0, 1], [1, 0]]), np.eye(2, dtype=np.int64)) * wavelengths
    along = np.kron(np.eye(2, dtype=np.int64), np.array([[0, 1], [1, 0]])) * wavelengths
    assert bound_of((2, 2), wavelengths)[0] == pytest.approx(least_time([across, along]), rel=1e-6)


def test_eight_ports_of_three_wavelengths():
    """Two wavelengths along one permutation, one between pairs: within half a percent of the bound."""
    wide, narrow = [2, 4, 6, 1, 7, 0, 5, 3], [1, 0, 3, 2, 5, 4, 7, 6]
    reached = least_time([links_of(np.array([wide, wide, narrow]), 3)])
    assert reached == pytest.approx(9)
    assert bound_of((8,), 3)[0] <= reached + 1e-6
    assert bound_of((8,), 3)[0] > 0.995 * reached


def test_sixteen_nodes_have_two_partners():
    """Two partners of two wavelengths are 38 hops away in all, one of four 120, four of one 26."""
    assert bound_of((16,), 4)[0] == pytest.approx(min(38 / 2, 120 / 4, 26), rel=1e-6)
