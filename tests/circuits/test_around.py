"""Circuits around failed parts, beside a second implementation that takes circuits and cells one by one, on random machines."""

import itertools
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from opticcl.circuits import _around
from opticcl.circuits._around import around
from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Condition, Fabric, Occupied, Op, Options, PartKind, PartUse, Resource, Transfers, Usage

FIBRES, PORTS = 5, 2
ROUTES = [path for n in (1, 2) for path in itertools.permutations(range(FIBRES), n)]


class Odd(Fabric):
    """A machine without sense: ways between nodes lead through any fibres; four kinds of resources in any order.

    Args:
        rng: what it is drawn with.
        wide: whether circuits of a way are used together.
        guided: whether waveguides have numbers.
    """

    registered_name = "odd"
    num_nodes, num_wavelengths, rate_bits_per_s = 4, 3, 1.0
    resources, conditions, occupied = (), (), Occupied.none()

    def __init__(self, rng, wide, guided):
        self.guides, self.step = 2 if guided else 0, int(rng.integers(1, 3))
        self.num_wavelengths = int(rng.integers(2, 4))
        kinds = [
            Resource("tx_port", 4 * PORTS, capacity=int(rng.integers(1, 4)), per_wavelength=False),
            Resource("fibre", FIBRES, capacity=int(rng.integers(1, 3))),
            Resource("laser", 4, capacity=int(rng.integers(1, 3))),
        ]
        kinds += [Resource("waveguide", 2 * FIBRES, one_setting=True)] * guided
        self.resources = tuple(kinds[k] for k in rng.permutation(len(kinds)))
        dead = [("fibre", FIBRES), ("transmitter", 4 * PORTS)]
        self.conditions = tuple(Condition(kind, int(rng.integers(n))) for kind, n in dead if rng.random() < 0.6)
        if rng.random() < 0.7:
            self.occupied = Occupied.of([self._taken(rng) for _ in range(rng.integers(1, 5))])
        self.ways = {}
        for pair in itertools.permutations(range(4), 2):
            paths = [ROUTES[k] for k in rng.permutation(len(ROUTES))[:3]]
            places = list(
                itertools.product(range(PORTS), range(self.num_wavelengths), range(max(1, self.guides)), paths)
            )
            drawn = [places[k] for k in rng.permutation(len(places))[: rng.integers(3, 10)]]
            together = np.cumsum(rng.integers(0 if wide else 1, 3, len(drawn)))
            self.ways[pair] = [(int(g), *pair, *place) for g, place in zip(together, drawn, strict=True)]

    def _taken(self, rng):
        k = int(rng.integers(len(self.resources)))
        resource = self.resources[k]
        wavelength = int(rng.integers(self.num_wavelengths)) if resource.per_wavelength else 0
        return k, int(rng.integers(resource.count)), wavelength, int(rng.integers(1, 3))

    def usage(self, circuits):
        """A port, a laser of the sender, fibres and waveguides on the path."""
        owner, hops = circuits.hop_owner(), circuits.hops.astype(np.int64)
        for resource in self.resources[::-1]:
            if resource.kind == "tx_port":
                yield Usage(resource, circuits.src.astype(np.int64) * PORTS + circuits.port)
            elif resource.kind == "laser":
                yield Usage(resource, circuits.src)
            elif resource.kind == "fibre":
                for second in (False, True):
                    rows = np.isin(np.arange(len(hops)), circuits.hop_offsets) != second
                    yield Usage(resource, hops[rows], owner[rows])
            else:
                yield Usage(resource, hops * 2 + circuits.waveguide[owner], owner)

    def faults(self, circuits):
        """None."""
        return ()

    def parts_used(self, circuits):
        """Fibres and transmitters."""
        yield PartUse("fibre", circuits.hops.astype(np.int64), circuits.hop_owner())
        yield PartUse("transmitter", circuits.src.astype(np.int64) * PORTS + circuits.port)

    def inventory(self):
        """Parts that can fail."""
        return PartKind("fibre", FIBRES), PartKind("transmitter", 4 * PORTS)

    def options(self, src, dst):
        """As drawn; numbers of choices leave gaps."""
        pairs = [self.ways[pair] for pair in zip(src.tolist(), dst.tolist(), strict=True)]
        rows = [(row, way) for row, ways in enumerate(pairs) for way in ways]
        choice = np.array([40 * row + way[0] for row, way in rows], np.int64)
        return Options(self.lit([(row, *way[1:5], 1, *way[5:]) for row, way in rows]), choice)

    def lit(self, rows, step=None):
        """Circuits from (transfer, src, dst, port, wavelength, wavelengths, waveguide, path)."""
        columns = np.array([row[:7] for row in rows], np.int64).reshape(-1, 7).T
        hops = [hop for row in rows for hop in row[7]]
        offsets = np.cumsum([0, *(len(row[7]) for row in rows)])
        guide = columns[6] if self.guides else None
        return Circuits.of(*columns[:6], (hops, offsets), step or self.step, guide)

    def cells(self, row):
        """Resource, index and wavelength of each cell that a circuit takes."""
        _, src, _, port, lo, n, guide, path = row
        lit = range(lo, lo + n * self.step, self.step)
        for k, resource in enumerate(self.resources):
            if resource.kind == "tx_port":
                yield k, src * PORTS + port, 0
            elif resource.kind == "laser":
                yield from ((k, src, w) for w in lit)
            elif resource.kind == "fibre":
                yield from ((k, hop, w) for hop in path for w in lit)
            else:
                yield from ((k, 2 * hop + guide, w) for hop in path for w in range(self.num_wavelengths))


class Reference:
    """What the docstring of `_around` says, circuit by circuit.

    Args:
        fabric, transfers, given, widens: as of `around`.
        most: cells of the ways of a step.
        apart: whether given circuits have another distance between wavelengths than the ways.
    """

    def __init__(self, fabric, transfers, given, widens, most, apart):
        self.fabric, self.given, self.widens, self.most, self.apart = fabric, given, widens, most, apart
        self.pairs = list(zip(transfers.src.tolist(), transfers.dst.tolist(), strict=True))
        self.sizes = transfers.chunk_n.tolist()
        taken, self.taken = fabric.occupied, Counter()
        for *cell, count in np.transpose([taken.resource, taken.index, taken.wavelength, taken.count]).tolist():
            self.taken[tuple(cell)] = count

    def room(self, cell, taken):
        """Circuits that may still take a cell."""
        return self.fabric.resources[cell[0]].capacity - taken[cell]

    def works(self, row):
        """Whether a circuit passes nothing that failed or is full."""
        dead = {(c.kind, c.index) for c in self.fabric.conditions}
        parts = {("transmitter", row[1] * PORTS + row[3]), *(("fibre", hop) for hop in row[7])}
        return not dead & parts and all(self.room(cell, self.taken) > 0 for cell in self.fabric.cells(row))

    def good(self, rows):
        """Of each circuit of a round whether it works and fits beside what is taken and those before it."""
        before, found = Counter(self.taken), []
        for row in rows:
            cells = list(self.fabric.cells(row))
            fits = all(self.room(cell, before) > 0 for cell in cells if self.taken[cell])
            found.append(self.works(row) and fits)
            before.update(cells)
        return found

    def ways(self, transfers):
        """Of each of the transfers its ways that work: (circuits that work, cells); None: too many."""
        rows = {t: [(t, *way[1:5], 1, *way[5:]) for way in self.fabric.ways[self.pairs[t]]] for t in transfers}
        if sum(1 + len(row[7]) for each in rows.values() for row in each) > self.most:
            return None
        found = {}
        for t in transfers:
            groups = {}
            for way, row in zip(self.fabric.ways[self.pairs[t]], rows[t], strict=True):
                groups.setdefault(way[0], []).append(row)
            lit = [
                ([r for r in g if self.works(r)], {c for r in g for c in self.fabric.cells(r)}) for g in groups.values()
            ]
            found[t] = [way for way in lit if way[0]]
            if not found[t]:
                raise UnsupportedError(f"nodes {' and '.join(map(str, self.pairs[t]))}")
        return found

    def turns(self, transfers, ways, taken, have, wanted, used):
        """Each takes its first free way, by turns."""
        progress = True
        while progress:
            progress = False
            for t in transfers:
                free = [w for w in ways[t] if w not in used and all(self.room(cell, taken) > 0 for cell in w[1])]
                if have[t] < wanted[t] and free:
                    used.append(free[0])
                    taken.update(free[0][1])
                    have[t] += len(free[0][0])
                    progress = True

    def first_fit(self, waiting, ways):
        """Rounds of transfers, those that come first served first."""
        rounds = []
        while waiting:
            taken, have, used = Counter(self.taken), Counter(), []
            self.turns(waiting, ways, taken, have, dict.fromkeys(waiting, 1), used)
            placed = [t for t in waiting if have[t]]
            if not placed:
                raise UnsupportedError("taken by stuck parts")
            if self.widens:
                self.turns(placed, ways, taken, have, dict.fromkeys(placed, 99), used)
            order = [way for t in waiting for way in ways[t] if way in used]
            rounds.append(self.merged([row for lit, _ in order for row in lit]))
            waiting = [t for t in waiting if not have[t]]
        return rounds

    def merged(self, rows):
        """Circuits a step apart as one."""
        step, found = self.fabric.step, []
        for row in sorted(rows, key=lambda r: (r[0], r[3], r[6], r[4] % step, r[4])):
            last = found[-1] if found else None
            if last and (*last[:4], *last[6:], last[4] + last[5] * step) == (*row[:4], *row[6:], row[4]):
                found[-1] = (*last[:5], last[5] + 1, *last[6:])
            else:
                found.append(row)
        return found

    def repaired(self):
        """Circuits that work stay."""
        good = [self.good(rows) for rows in self.given]
        lost = [
            {r[0] for r, ok in zip(rows, oks, strict=True) if not ok} - {-1}
            for rows, oks in zip(self.given, good, strict=True)
        ]
        kept = [[r for r, ok in zip(rows, oks, strict=True) if ok] for rows, oks in zip(self.given, good, strict=True)]
        hurt = sorted(set().union(*lost))
        ways = self.ways(hurt)
        if ways is None or self.apart:
            return None
        joint = any(
            len({w[0] for w in self.fabric.ways[self.pairs[t]]}) < len(self.fabric.ways[self.pairs[t]]) for t in hurt
        )
        found, late = [], []
        for rows, mine, of in zip(self.given, kept, lost, strict=True):
            taken, used = Counter(self.taken), []
            taken.update(cell for row in (rows if joint else mine) for cell in self.fabric.cells(row))
            wanted, have = (Counter() for _ in range(2))
            for row in rows:
                wanted[row[0]] += row[5]
            for row in mine:
                have[row[0]] += row[5]
            if not self.widens:
                wanted = dict.fromkeys(wanted, 1)
            self.turns(sorted(of), ways, taken, have, wanted, used)
            more = self.merged([row for t in sorted(of) for way in ways[t] if way in used for row in way[0]])
            found.append(sorted([*mine, *more], key=lambda row: row[0]))
            late += [t for t in of if not have[t]]
        return [rows for rows in found if rows] + self.first_fit(sorted(late), ways)

    def fresh(self):
        """All transfers, those far apart on the ring of node numbers first."""
        ahead = [(dst - src) % 4 for src, dst in self.pairs]
        order = sorted(range(len(ahead)), key=lambda t: (max(ahead[t], 4 - ahead[t]), self.pairs[t], t))
        ways = self.ways(order)
        if ways is None:
            return None
        return [sorted(rows, key=lambda row: row[0]) for rows in self.first_fit(order, ways)]

    def duration(self, rounds):
        """Sum of the largest size / width."""
        total = Fraction(0)
        for rows in rounds:
            width = Counter()
            for row in rows:
                width[row[0]] += row[5]
            total += max((Fraction(self.sizes[t], n) for t, n in width.items() if t >= 0), default=0)
        return total

    def rounds(self):
        """The shorter of both."""
        if all(all(self.good(rows)) for rows in self.given):
            return "given", self.given
        found = [
            (name, rounds)
            for name, rounds in (("repaired", self.repaired()), ("fresh", self.fresh()))
            if rounds is not None
        ]
        if not found:
            raise UnsupportedError("too many ways")
        return min(found, key=lambda one: self.duration(one[1]))


def drawn_rounds(rng, fabric, pairs):
    """One to three circuits for each transfer, all in one round, and idle ones."""
    rounds = [[] for _ in range(3)]
    for t, pair in enumerate(pairs):
        k = int(rng.integers(2))
        ways = fabric.ways[pair]
        for number, i in enumerate(rng.permutation(len(ways))[: rng.integers(1, 4)]):
            n = int(rng.integers(1, (fabric.num_wavelengths - 1 - ways[i][4]) // fabric.step + 2))
            idle = number > 0 and rng.random() < 0.2
            rounds[k].append((-1 if idle else t, *ways[i][1:5], n, *ways[i][5:]))
    return [sorted(rows, key=lambda row: row[0]) for rows in rounds if rows]


def listed(circuits):
    """Rows as `Odd.lit` takes them."""
    names = ("transfer", "src", "dst", "port", "wavelength_lo", "wavelength_n")
    columns = [getattr(circuits, name).tolist() for name in names]
    columns.append([0] * len(circuits) if circuits.waveguide is None else circuits.waveguide.tolist())
    return [(*row, tuple(circuits.path(i).tolist())) for i, row in enumerate(zip(*columns, strict=True))]


@pytest.mark.parametrize(("wide", "guided"), [(False, False), (True, False), (False, True), (True, True)])
def test_rounds_are_those_of_the_second_implementation(monkeypatch, wide, guided):
    """Circuit by circuit, or refused for the same reason; every answer is among them."""
    seen = Counter()
    for seed in range(40):
        rng = np.random.default_rng([seed, wide, guided])
        fabric = Odd(rng, wide, guided)
        pairs = [tuple(rng.permutation(4)[:2].tolist()) for _ in range(rng.integers(1, 6))]
        transfers = Transfers.of(*np.array(pairs).T, np.arange(len(pairs)), rng.integers(1, 4, len(pairs)), Op.COPY)
        given = drawn_rounds(rng, fabric, pairs)
        widens = bool(rng.integers(2))
        apart = seed % 4 == 1 and all(row[5] == 1 for rows in given for row in rows)
        cells = sum(1 + len(way[-1]) for pair in pairs for way in fabric.ways[pair])
        most = [cells + int(rng.integers(-2, 1)), 1 << 20][seed % 4 > 0]
        monkeypatch.setattr(_around, "MOST_CELLS", most)
        reference = Reference(fabric, transfers, given, widens, most, apart)
        rounds = tuple(fabric.lit(rows, 3 - fabric.step if apart else None) for rows in given)
        rule = around(fabric, lambda step, _, rounds=rounds: rounds, widens=widens)
        try:
            name, expected = reference.rounds()
        except UnsupportedError as error:
            seen[str(error)[:5]] += 1
            with pytest.raises(UnsupportedError, match=str(error)):
                rule(0, transfers)
            continue
        seen[name] += 1
        found = rule(0, transfers)
        assert [listed(circuits) for circuits in found] == [list(rows) for rows in expected], seed
        assert name == "given" or {circuits.wavelength_step for circuits in found} == {fabric.step}
    assert min(seen[name] for name in ("given", "repaired", "fresh", "nodes", "too m")) > 0


@pytest.mark.parametrize("guided", [False, True])
def test_neighbouring_wavelengths_are_merged(guided):
    """Of one transfer, port, path and waveguide; none at all too."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        fabric = Odd(rng, False, guided)
        every = itertools.product(range(2), [1], [3], range(2), range(5), [1], range(1 + guided), [(1,), (1, 3)])
        kept = [row for row in every if rng.random() < seed / 100]
        rows = [kept[k] for k in rng.permutation(len(kept))]
        expected = Reference(fabric, Transfers.of([1], [3], 0, 1, Op.COPY), [], True, 0, False).merged(rows)
        assert listed(_around._merged(fabric.lit(rows))) == expected


def test_circuits_that_come_first_fit_beside_what_is_taken():
    """Three to a cell, of which one is taken of every other: a third circuit fits on the others alone."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        fabric = Odd(rng, False, False)
        fabric.conditions = ()
        fabric.resources = tuple(Resource(r.kind, r.count, 3, r.per_wavelength) for r in fabric.resources)
        depth = [3 if r.per_wavelength else 1 for r in fabric.resources]
        every = [(k, *cell) for k, r in enumerate(fabric.resources) for cell in np.ndindex(r.count, depth[k])]
        fabric.num_wavelengths, fabric.occupied = 3, Occupied.of([(*cell, 1) for cell in every[::2]])
        rows = [row for rows in drawn_rounds(rng, fabric, list(fabric.ways)) for row in rows]
        step = Transfers.of([0], [1], 0, 1, Op.COPY)
        expected = Reference(fabric, step, [], True, 0, False).good(rows)
        assert (_around._works(fabric, fabric.lit(rows)) & _around._fits(fabric, fabric.lit(rows))).tolist() == expected
        assert len(set(expected)) == 2
