"""SiPCO beyond all_reduce: every collective right for every shape, root and k, with the volumes of its docstring."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.collective import ROOTED, Request
from opticcl.execute import execute
from opticcl.fabrics import fabric
from opticcl.ir import Fabric, Schedule
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.verify import verify

SHAPES = [(1,), (2,), (7,), (2, 2), (2, 3), (3, 3), (3, 2, 4), (4, 8, 2)]
BY_BLOCKS = ("reduce_scatter", "all_gather", "all_to_all", "scatter", "gather")
BY_K = ("all_reduce", "barrier", "broadcast", "reduce")
PAPER = [(2,), (2, 2), (2, 2, 2), (3, 3), (4, 4), (8, 8, 8), (16, 16)]  # (r, L)


def _fabric(radices: tuple[int, ...]) -> Fabric:
    return fabric("sipac", radices=radices)


def _requests(name: str, num_nodes: int) -> list[Request]:
    """One for every root of up to four nodes, for two of more."""
    if name not in ROOTED:
        return [Request(name)]
    roots = range(num_nodes) if num_nodes <= 4 else (num_nodes // 3, num_nodes - 1)
    return [Request(name, root) for root in roots]


def _algorithms(name: str, radices: tuple[int, ...]) -> list[str]:
    return ["sipco"] if name in BY_BLOCKS else [f"sipco:k={k}" for k in range(len(radices) + 1)]


def _loads(schedule: Schedule, i: int, radices: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Parts of the message that leave and enter each node at each level in a step, float64 (nodes, levels) twice."""
    step, strides = schedule.step(i), np.cumprod([1, *radices[:-1]])
    differ = step.src[:, None] // strides % radices != step.dst[:, None] // strides % radices
    assert (differ.sum(axis=1) == 1).all()
    level, size = differ.argmax(axis=1), step.size_chunks() / schedule.collective.num_chunks
    shape = (prod(radices), len(radices))
    out, into = (np.bincount(node * shape[1] + level, size, prod(shape)) for node in (step.src, step.dst))
    return out.reshape(shape), into.reshape(shape)


def _total(schedule: Schedule, radices: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The same of all steps together."""
    steps = [_loads(schedule, i, radices) for i in range(schedule.num_steps)]
    return sum(out for out, _ in steps), sum(into for _, into in steps)


@pytest.mark.parametrize("name", BY_BLOCKS + BY_K)
@pytest.mark.parametrize("radices", SHAPES)
def test_verified(radices: tuple[int, ...], name: str) -> None:
    """Data and light are right, also with switches of different radices, whatever the root and k."""
    where = _fabric(radices)
    for request in _requests(name, where.num_nodes):
        for algorithm in _algorithms(name, radices):
            verdict = verify(lower(where, generate(algorithm, request, where)))
            assert verdict.ok, f"{request} {algorithm}: {verdict}"
            assert verdict.exhaustive


@pytest.mark.parametrize("radices", [(1,), (2,), (3, 3), (4, 8, 2), (3, 2, 5)])
def test_send_recv(radices: tuple[int, ...]) -> None:
    """To any distance, also to nodes under no common switch: L steps, right in data and light."""
    where, n = _fabric(radices), prod(radices)
    data = np.random.default_rng(n).integers(-99, 99, (n, 4))
    for shift in {1, 2, n // 2, n - 1, n + 1, -1, 0}:
        schedule = generate("sipco", Request("send_recv", shift=shift), where)
        plan = lower(where, schedule)
        assert schedule.num_steps == (len(radices) if shift % n else 0)
        assert verify(plan).ok
        assert all(len(plan.rounds(i)) == 1 for i in range(schedule.num_steps))  # no two parts on a channel
        assert np.array_equal(execute(schedule, data), np.roll(data, shift, axis=0))


def test_send_recv_uses_all_levels_at_once() -> None:
    """Digits that all change by one without carry: a third of the block on one channel of each level, in every step."""
    radices = (4, 4, 4)
    schedule = generate("sipco", Request("send_recv", shift=1 + 4 + 16), _fabric(radices))
    for i in range(3):
        step = schedule.step(i)
        of_node_0 = step.take(step.chunk_lo < 3)
        assert sorted((of_node_0.dst - of_node_0.src).tolist()) == [1, 4, 16]


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("radices", PAPER)
def test_every_link_carries_the_least(radices: tuple[int, ...], name: str) -> None:
    """(p - 1) blocks over L links, out and in, in L steps: no all-gather can do with less."""
    schedule, p, levels = generate("sipco", name, _fabric(radices)), prod(radices), len(radices)
    assert schedule.num_steps == levels
    for load in _total(schedule, radices):
        assert load == pytest.approx(np.full_like(load, (p - 1) / (p * levels)))


@pytest.mark.parametrize("radices", [*PAPER, (4, 8, 2), (3, 2, 5)])
def test_all_to_all_loads_every_link_in_every_step(radices: tuple[int, ...]) -> None:
    """(r - 1)/r n/L in each of L steps, with the radix of the level; (r - 1)/r n in all."""
    schedule, levels = generate("sipco", "all_to_all", _fabric(radices)), len(radices)
    assert schedule.num_steps == levels
    due = np.array([(radix - 1) / radix / levels for radix in radices])
    for i in range(levels):
        for load in _loads(schedule, i, radices):
            assert load == pytest.approx(np.broadcast_to(due, load.shape))


@pytest.mark.parametrize(("name", "end"), [("scatter", "src"), ("gather", "dst")])
@pytest.mark.parametrize("radices", PAPER)
def test_busiest_channel_of_a_rooted_collective(radices: tuple[int, ...], name: str, end: str) -> None:
    """(p - 1)/(L (r - 1)) blocks: every channel of the root carries that, no other channel more."""
    p, levels, radix, root = prod(radices), len(radices), radices[0], prod(radices) // 3
    schedule = generate("sipco", Request(name, root), _fabric(radices))
    assert schedule.num_steps == levels
    channels = np.zeros((p, p))
    for i in range(levels):
        step = schedule.step(i)
        np.add.at(channels, (step.src, step.dst), step.chunk_n / (schedule.collective.num_chunks / p))
    of_root = channels[root] if end == "src" else channels[:, root]
    assert np.count_nonzero(of_root) == levels * (radix - 1)
    assert of_root[of_root > 0] == pytest.approx((p - 1) / (levels * (radix - 1)))
    assert channels.max() == pytest.approx((p - 1) / (levels * (radix - 1)))


@pytest.mark.parametrize(("name", "direction"), [("broadcast", 0), ("reduce", 1)])
@pytest.mark.parametrize("radices", [(2, 2, 2), (3, 3), (4, 4), (5,)])
def test_volume_at_the_root(radices: tuple[int, ...], name: str, direction: int) -> None:
    """L + k steps, and on each link of the root what an all_reduce would put there."""
    r, levels, root = radices[0], len(radices), prod(radices) - 1
    for k in range(levels + 1):
        schedule = generate(f"sipco:k={k}", Request(name, root), _fabric(radices))
        assert schedule.num_steps == levels + k
        formula = 2 / levels * (1 - r**-k) + (levels - k) * (r - 1) / (levels * r**k)
        load = _total(schedule, radices)[direction]
        assert load[root] == pytest.approx(np.full(levels, formula))
        assert load.max() == pytest.approx(formula)


@pytest.mark.parametrize("name", ["all_gather", "reduce_scatter", "scatter", "gather", "broadcast", "all_reduce"])
def test_mixed_radices_move_as_much_in_all(name: str) -> None:
    """4 x 8 x 2: a node's links together, or the root's, carry what the formula gives with p = 64."""
    radices, p = (4, 8, 2), 64
    name_k = "sipco:k=3" if name in BY_K else "sipco"
    schedule = generate(name_k, Request(name, 5), _fabric(radices))
    out, into = _total(schedule, radices)
    due = (2 if name in BY_K else 1) * (p - 1) / p
    assert (into if name == "gather" else out)[5].sum() == pytest.approx(due)


@pytest.mark.parametrize(("forth", "back"), [("reduce_scatter", "all_gather"), ("scatter", "gather")])
@pytest.mark.parametrize("radices", [(3, 3), (4, 8, 2)])
def test_exact_reversal_in_time(radices: tuple[int, ...], forth: str, back: str) -> None:
    """The last step backwards is the first of the other: same pairs reversed, same chunks."""
    one, other = (generate("sipco", Request(name, 4), _fabric(radices)) for name in (forth, back))
    assert np.array_equal(one.collective.owner, other.collective.owner)
    for i in range(one.num_steps):
        a, b = one.step(i), other.step(one.num_steps - 1 - i)
        there = zip(a.src.tolist(), a.dst.tolist(), a.chunk_lo.tolist(), a.chunk_n.tolist(), strict=True)
        again = zip(b.dst.tolist(), b.src.tolist(), b.chunk_lo.tolist(), b.chunk_n.tolist(), strict=True)
        assert set(there) == set(again)


@pytest.mark.parametrize("name", BY_BLOCKS + BY_K)
def test_every_level_is_busy_in_every_step(name: str) -> None:
    """Some transfer at each of the levels of SiPAC(3, 3), whatever the collective and k."""
    radices = (3, 3, 3)
    for algorithm in _algorithms(name, radices):
        schedule = generate(algorithm, Request(name, 7), _fabric(radices))
        for i in range(schedule.num_steps):
            assert (_loads(schedule, i, radices)[0].sum(axis=0) > 0).all()


@pytest.mark.parametrize(("name", "steps"), [("barrier", 3), ("broadcast", 3), ("reduce", 3), ("all_reduce", 4)])
def test_steps_without_k(name: str, steps: int) -> None:
    """The paper's L + 1 for all_reduce, L for what is short of time."""
    assert generate("sipco", name, fabric("sipac")).num_steps == steps


def test_parts_grow_with_every_level() -> None:
    """All-to-all on 4 x 8 x 2: part 0 walks levels 0, 2, 1, so it carries 1, 4 and 8 contributions of a chunk."""
    schedule = generate("sipco", "all_to_all", _fabric((4, 8, 2)))
    chunks_of_part_0 = schedule.collective.num_chunks // 3
    for i, parts in enumerate((1, 4, 8)):
        step = schedule.step(i)
        assert step.parts is not None
        assert set(step.parts[step.chunk_lo < chunks_of_part_0].tolist()) == {parts}


@pytest.mark.parametrize(
    ("name", "latencies", "parts"),  # of the message on a link
    [
        ("all_gather", 3, 511 / 512 / 3),
        ("reduce_scatter", 3, 511 / 512 / 3),
        ("scatter", 3, 511 / 512 / 3),
        ("gather", 3, 511 / 512 / 3),
        ("all_to_all", 3, 7 / 8),
        ("broadcast", 3, 7),
        ("barrier", 3, 0),  # a barrier carries nothing
    ],
)
@pytest.mark.parametrize(("channels", "slower"), [("retuned", 1), ("published", 8 / 7)])
def test_times(name: str, latencies: int, parts: float, channels: str, slower: float) -> None:
    """SiPAC(8, 3), 100 MB, 512 Gb/s a link: L latencies and the volume of a link; r/(r-1) of that with B/r channels."""
    where = fabric("sipac", node_rate="1536 Gb/s", channels=channels)
    timeline = compile(where, name, "100 MB", algorithm="sipco").simulate(assumptions="sipac")
    assert timeline.total_s == pytest.approx(latencies * 1e-6 + slower * parts * 100e6 * 8 / 512e9)
    assert timeline.total_s >= timeline.lower_bound_s


def test_best_k_of_a_broadcast_grows_with_the_message() -> None:
    """A small message takes the fewest steps, a large one is scattered and gathered."""
    where = fabric("sipac")
    best = [
        min(
            range(4),
            key=lambda k: (
                compile(where, "broadcast", size, algorithm=f"sipco:k={k}").simulate(assumptions="published").total_s
            ),
        )
        for size in ("100 B", "100 KB", "100 MB")
    ]
    assert best == sorted(best)
    assert (best[0], best[-1]) == (0, 3)


@pytest.mark.deep
@pytest.mark.parametrize("name", BY_BLOCKS + BY_K)
def test_4096_nodes(name: str) -> None:
    """SiPAC(16, 3): all circuits are counted and all chunks proven."""
    where = fabric("sipac", radix=16, levels=3)
    assert verify(lower(where, generate("sipco", Request(name, 1234), where))).ok
