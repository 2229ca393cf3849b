"""The fewest rounds by exhaustive search, for a few ranks: an oracle that shares no code with the synthesis."""

from collections import Counter
from functools import cache
from itertools import combinations


class _TooManyChoicesError(Exception):
    """The search has tried as many choices as it may."""


def fewest_rounds(shape, lasers, waveguides, before, after, adds, most, choices=30_000):
    """(rounds, exact) of the shortest schedule in which ranks relay what they hold or need.

    The search stops after `choices` choices: fewer than `rounds` rounds are then excluded, exact is False, and nothing is known
    of `rounds` themselves.

    Args:
        shape: rows and columns.
        lasers, waveguides: of each tile and each edge [count].
        before, after: who holds what at the start and at the end, bool (pieces, ranks).
        adds: the parts of a piece are summed; otherwise all holders hold the same data.
        most: rounds after which the search ends; rounds are then most + 1, not exact.
        choices: limit of the search; what one rank receives of one piece in one round is a choice [count].
    """
    pieces, ranks = before.shape
    state = tuple(tuple((1 << r if adds else 1) if before[p, r] else 0 for r in range(ranks)) for p in range(pieces))
    whole = [sum(set(row)) for row in state]  # bits of all parts, or 1
    due = [(p, r) for p in range(pieces) for r in range(ranks) if after[p, r]]
    members = [(p, r) for p in range(pieces) for r in range(ranks) if before[p, r] or after[p, r]]
    fits = cache(lambda sends: _has_light(sends, shape[1], lasers, waveguides))
    left = iter(range(choices))
    states, seen = {state}, {state}
    for rounds in range(most + 1):
        if any(all(s[p][r] == whole[p] for p, r in due) for s in states):
            return rounds, True
        if rounds < most:
            try:
                states = {then for s in states for then in _next(s, members, fits, lasers, adds, left)} - seen
            except _TooManyChoicesError:
                return rounds + 1, False
            seen |= states
    return most + 1, False


def _next(state, members, fits, lasers, adds, left):
    """States after one more round; `left` is advanced by a choice."""
    reached = []

    def choose(number, sends, then):
        if number == len(members):
            reached.append(tuple(map(tuple, then)))
            return
        if next(left, None) is None:
            raise _TooManyChoicesError
        choose(number + 1, sends, then)
        piece, dst = members[number]
        has = state[piece][dst]
        able = [src for p, src in members if p == piece and src != dst and state[p][src]]
        for count in range(1, min(lasers if adds else 1, len(able)) + 1):
            for sources in combinations(able, count):
                more = tuple(sorted([*sends, *((src, dst) for src in sources)]))
                parts = [state[piece][src] for src in sources]
                total = sum(parts)
                apart = sum(map(int.bit_count, parts)) == total.bit_count()
                results = {total} if count == 1 else set()
                if adds and apart and not total & has:
                    results.add(total | has)
                for result in results - {has} if apart and (adds or not has) and fits(more) else ():
                    then[piece][dst] = result
                    choose(number + 1, more, then)
                    then[piece][dst] = has

    choose(0, (), [list(row) for row in state])
    if adds:
        return reached
    have = [sum(1 << i for i, held in enumerate(h for row in s for h in row) if held) for s in reached]
    most = [b for b in set(have) if not any(a != b and a & b == b for a in set(have))]  # receiving more is never worse
    return [reached[have.index(b)] for b in most]


def _has_light(sends, columns, lasers, waveguides):
    """Whether all can be sent in one round, each on some wavelength along the row and the column or the other way round."""
    ends = Counter(("from", src) for src, _ in sends) + Counter(("to", dst) for _, dst in sends)
    if max(ends.values(), default=0) > lasers:
        return False
    used = Counter()

    def lay(number):
        if number == len(sends):
            return True
        src, dst = sends[number]
        for wavelength in range(lasers):
            for edges in _paths(src, dst, columns):
                takes = [("from", src, wavelength), ("to", dst, wavelength), *((*edge, wavelength) for edge in edges)]
                room = [1, 1] + [waveguides] * len(edges)
                if all(used[what] < most for what, most in zip(takes, room, strict=True)):
                    used.update(takes)
                    if lay(number + 1):
                        return True
                    used.subtract(takes)
        return False

    return lay(0)


def _paths(src, dst, columns):
    """Tiles from corner to corner, as edges: by both ends of its L."""
    (r0, c0), (r1, c1) = divmod(src, columns), divmod(dst, columns)
    for corner in {(r0, c1), (r1, c0)}:
        at, path = (r0, c0), []
        for goal in (corner, (r1, c1)):
            while at != goal:
                step = tuple(a + (g > a) - (g < a) for a, g in zip(at, goal, strict=True))
                path.append((at, step))
                at = step
        yield path
