"""Counter-examples that count: functions of the inputs that errata list."""

from collections import Counter
from itertools import product


def nodes_beside_other_portions(x: int, J: int, L: int) -> int:
    """Nodes whose subgroup of step 3 (table 6) has a member with other portions of steps 1 and 2 (table 7)."""

    def portions(g: int, j: int, device: int) -> tuple[int, int]:
        group = device // x
        return (g - device - j - group * j) % x, (g - j - group * j) % x

    nodes = product(range(x), range(J), range(L))
    return sum(any(portions(*member) != portions(*node) for member in _step_3(x, J, *node)) for node in nodes)


def _step_3(x: int, J: int, g: int, j: int, device: int) -> list[tuple[int, int, int]]:
    return [(((g - j) % x + y) % x, ((j + y) % J - j) % J, device) for y in range(J)]


def senders_at_a_receiver(x: int, J: int, L: int) -> int:
    """Most senders of step 3 (table 6) that equation 2 sends to one transceiver of a node."""
    used = Counter()
    for node in product(range(x), range(J), range(L)):
        for member in _step_3(x, J, *node):
            if member != node:
                used[member, (node[0] + member[0] + node[1]) % x] += 1
    return max(used.values())


def racks_of_a_subgroup(x: int, J: int, L: int) -> int:
    """Most racks that nodes with one number of the first formula of step 4 in table 5 are in."""
    racks: dict[int, set[int]] = {}
    for g, j, device in product(range(x), range(J), range(L)):
        group = device // x
        number = (device - group * x) % x + x**2 * j + ((g - j * group) % x) * x
        racks.setdefault(number, set()).add(j)
    return max(map(len, racks.values()))


def wavelengths_of_an_exchange(nodes: int) -> int:
    """Wavelengths, first fit, on which all nodes of a ring with two directions send to all others the shorter way."""
    taken: list[set[tuple[int, int]]] = []
    for source, hops in product(range(nodes), range(1, nodes)):
        way = 1 if hops <= nodes - hops else -1
        path = {(way, (source + way * hop) % nodes) for hop in range(min(hops, nodes - hops))}
        free = next((number for number, used in enumerate(taken) if not used & path), len(taken))
        taken += [set()] if free == len(taken) else []
        taken[free] |= path
    return len(taken)


def longest_collection(nodes: int, group: int) -> int:
    """Segments of the longest path to the middle node of a group, over the levels of section 4.1.1."""
    left, longest = list(range(nodes)), 0
    while len(left) > 1:
        groups = [left[first : first + group] for first in range(0, len(left), group)]
        left = [members[len(members) // 2] for members in groups]
        apart = [abs(middle - node) for middle, members in zip(left, groups, strict=True) for node in members]
        longest = max(longest, *(min(way, nodes - way) for way in apart))
    return longest


def one_flag_ends_in_a_deadlock(nodes: int) -> int:
    """1 if some order of messages of a halving-doubling all-reduce leads the printed protocol to no end, else 0."""
    from tests.operations.printed_protocol import as_printed

    from opticcl.operations.oddl_control.script import ControlExchange, Script
    from opticcl.operations.oddl_control.state_space import explore

    bits = [1 << bit for bit in reversed(range(nodes.bit_length() - 1))]
    met = [*bits, *reversed(bits)]
    units = [Script(node, tuple(ControlExchange((node ^ bit,), (node ^ bit,)) for bit in met)) for node in range(nodes)]
    return int(not explore(tuple(units), "perfect", reaction=as_printed).ok)


def lasers_by_algorithm_3(lasers: int, receivers: int) -> int:
    """Lasers that one sender to all receivers uses in the first round of algorithm 3: it counts what a receiver picks."""
    circuits = {receiver: ["sender"] for receiver in range(receivers)}
    links = [(source, receiver) for receiver, sources in circuits.items() for source in sources[:lasers]]
    return max(Counter(source for source, _ in links).values())


def transfers_by_equation_2(gpus: int, rounds: int) -> int:
    """Most transfers of an all-gather that fulfil equation 2 as printed, over all assignments of its variables."""
    pairs = [(s, d) for s, d in product(range(gpus), repeat=2) if s != d]
    names = list(product(range(rounds), pairs, range(gpus)))
    most = 0
    for values in product((0, 1), repeat=len(names)):
        sent = {name for name, value in zip(names, values, strict=True) if value}
        received = Counter((d, c, r) for r, (_, d), c in sent)
        before = {(r, s, c): sum(received[s, c, earlier] for earlier in range(r)) for r, (s, _), c in sent}
        if all(count == 1 for count in before.values()):
            most = max(most, len(sent))
    return most
