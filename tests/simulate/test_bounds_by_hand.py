"""Lower bounds form by form: against definitions that are written down again, and by small numbers."""

import numpy as np
import pytest
from tests.collectives import nothing_required

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.ir import Op, Schedule, Transfers
from opticcl.simulate import bounds, class_bounds, lower_bound, schedule_facts
from opticcl.simulate.bounds import least_transfer_s
from opticcl.simulate.latency import path_latency

WARM = assumptions("published", initial="warm", control="none", compute="none")


def bound(where, name, size, assumed=WARM, root=0, shift=1, **options):
    """Lower bound of a collective on a fabric."""
    where = fabric(where) if isinstance(where, str) else where
    wanted = Request(name, root, shift).on(where.num_nodes, where.num_nodes)
    return lower_bound(wanted, where, size, assumed, **options)


def test_a_send_to_oneself_takes_no_time():
    """Round a ring of four; another collective with that shift does."""
    assert bound("ideal:nodes=4", "send_recv", 10**6, shift=4).seconds == 0
    assert bound("ideal:nodes=4", "send_recv", 10**6, shift=5).seconds > 0
    assert bound("ideal:nodes=4", "all_gather", 10**6, shift=4).seconds > 0
    for name, shift, due in (("send_recv", 4, 0), ("send_recv", 1, 1 / 4), ("all_gather", 4, 3 / 4), ("barrier", 1, 0)):
        wanted = Request(name, 0, shift).on(4, 4)
        assert least_transfer_s(wanted, fabric("ideal:nodes=4"), 10**6, WARM) == pytest.approx(due * 8e6 / 400e9)
    assert least_transfer_s(nothing_required(4, 4), fabric("ideal:nodes=4"), 10**6, WARM) == 0
    ring = fabric("terarack:nodes=64")
    across = 64 / 4 * 8e6 / (2 * ring.double_ring_bits_per_s)
    assert least_transfer_s(Request("all_to_all").on(64, 64), ring, 10**6, WARM) == pytest.approx(across)


def test_without_barriers_steps_overlap():
    """ODDL, four nodes on one switch: two steps until all know of all, of 5 us each if they are set; data of 3 us or 24 us.
    A message waits for its gap once."""
    where = fabric("oddl:shape=4")
    step_s, rate = where.reconfiguration_s, where.node_rate_bits_per_s
    every = assumptions("oddl", control="none")
    for size in (10**4, 10**6):
        moved_s = 3 / 4 * 8 * size / rate
        for starts, due_s in (("steps", 2 * step_s + moved_s), ("data", max(2 * step_s, step_s + moved_s))):
            assert bound(where, "all_gather", size, every, starts=starts).seconds == pytest.approx(due_s)
        assert bound(where, "all_gather", size, every, starts="devices").seconds == pytest.approx(step_s + moved_s)
    slow = assumptions(
        "common", endpoint=1e-3, transceiver=0, fibre=0, message_gap=1e-5, initial="warm", control="none"
    )
    moved_s = 3 / 4 * 8e4 / rate
    assert bound(where, "all_gather", 10**4, slow, starts="data").seconds == pytest.approx(2e-3)
    assert bound(where, "all_gather", 10**4, slow, starts="devices").seconds == pytest.approx(1.01e-3 + moved_s)
    ideal = fabric("ideal:nodes=5")
    slow = assumptions("common", endpoint="1 ms", transceiver=0, fibre=0, hop=0, server_hop=0, message_gap="1 us")
    for size in (10**4, 10**9):
        moved_s = 4 / 5 * 8 * size / ideal.node_rate_bits_per_s
        assert bound(ideal, "gather", size, slow, starts="data").seconds == pytest.approx(1.001e-3 + moved_s)


def test_steps_that_overlap_are_chosen_so():
    """LIGHTPATH, two lasers: contributions of 8/3 m in two steps, or of m in three, by the longer of steps and data; one
    message waits for its gap beside data."""
    where = fabric("lightpath:shape=3x3,lasers=2")
    size = 10**7
    m = 8 * size / where.node_rate_bits_per_s
    none = {"transceiver": 0, "fibre": 0, "waveguide": 0, "initial": "warm", "control": "none"}
    for scale, due in (
        (2.0, 1.5 + 8 / 6),
        (1.0, 3),
    ):  # steps of 1 and messages of 0.5, in units of m x scale
        unit = m * scale
        assumed = assumptions("common", endpoint=unit, message_gap=unit / 2, **none)
        found = bound(where, "reduce", size, assumed, starts="data").seconds
        assert found == pytest.approx(unit * due, rel=1e-4)


@pytest.mark.parametrize("where", ["oddl:shape=2x3", "sipac:radices=2x3", "oddl:shape=2x2x2"])
def test_steps_to_the_farthest_node(where):
    """One for each coordinate that differs, from the root, or between the ends of a send."""
    where = fabric(where)
    n = where.num_nodes
    axes = [axis.coordinate for axis in where.axes(np.arange(n))]
    step_s = 1e-3
    slow = assumptions("common", endpoint=step_s, transceiver=0, fibre=0, message_gap=0, initial="warm", control="none")

    def steps(**more):
        return round(bound(where, size=0, assumed=slow, **more).seconds / step_s)

    for shift in range(1, n):
        assert steps(name="send_recv", shift=shift) == sum(int(c[shift] != c[0]) for c in axes)
        assert steps(name="send_recv", shift=shift + n) == steps(name="send_recv", shift=shift)
    for root in (0, n - 1):
        assert steps(name="broadcast", root=root) >= len(axes)
    far = bound(where, "gather", 0, slow)
    assert far.name == f"{len(axes)} dependent steps (circuits to the farthest node)"


def test_more_steps_than_are_tried_are_bounded_by_the_last(monkeypatch):
    """LIGHTPATH, twelve tiles of one laser: a step for each partner, or as many as are tried."""
    where = fabric("lightpath:shape=3x4,lasers=1")
    size, step_s, change_s = 10**8, 1e-4, where.reconfiguration_s
    slow = assumptions(WARM, latency="parts", endpoint=step_s, transceiver=0, waveguide=0, message_gap=0)
    block_s = 8 * size / 12 / where.node_rate_bits_per_s
    for most, steps in ((4096, 11), (1, 5), (2, 6)):
        monkeypatch.setattr(bounds, "MOST_STEPS", most)
        found = bound(where, "all_to_all", size, slow).seconds
        assert found == pytest.approx(steps * step_s + 10 * change_s + 11 * block_s, rel=1e-6)


@pytest.mark.parametrize("where", ["torus:shape=5x2", "fat_tree:nodes=10", "topoopt:nodes=7,degree=1"])
def test_paths_of_packets(where):
    """From the root, to it, and between the ends of a send, with the gap of a message; by the routes of the fabric."""
    where = fabric(where)
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    apart = src != dst
    hops, ends = where.route(src[apart], dst[apart])
    late = assumptions("common", message_gap=1e-9)
    law = path_latency(where, late)
    owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    path_s = np.zeros((n, n))
    path_s[src[apart], dst[apart]] = law.base_s + np.bincount(owner, law.of_hops(hops))
    for root in (0, n // 2):
        for name, row in (("broadcast", path_s[root]), ("gather", path_s[:, root])):
            assert bound(where, name, 0, late, root=root).seconds == pytest.approx(row.max() + 1e-9, rel=1e-12)
    for shift in (1, 3, n + 3):
        due_s = path_s[0, shift % n] + 1e-9
        assert bound(where, "send_recv", 0, late, shift=shift).seconds == pytest.approx(due_s, rel=1e-12)
    overlapping, apart = (bound(where, "broadcast", 10**6, late, root=1, overlap=o).seconds for o in (True, False))
    assert overlapping > path_s[1].max() + 2e-9
    quickest_s = float(law.of_hops(np.arange(where.network.num_links)).min())
    assert overlapping < apart <= overlapping + path_s[1].max() - law.base_s - quickest_s + 1e-15


def test_paths_between_other_ranks_do_not_count():
    """On a ring of seven, nodes 0, 3 and 1: from and to the last of them it is two links at most, not three."""
    where = job(fabric("torus:shape=7"), [0, 3, 1])
    late = assumptions("common", message_gap=0, initial="warm")
    law = path_latency(where, late)
    hop_s = law.least_s - law.base_s
    for name in ("gather", "broadcast"):
        assert bound(where, name, 0, late, root=2).seconds == pytest.approx(law.base_s + 2 * hop_s)


def steps_of(where, pairs, assumed, *, sums=(), stands=False):
    """Bounds of steps in which pairs exchange two of four chunks."""

    def step(i):
        rows = np.array(pairs[i], int).reshape(-1, 2)
        return Transfers.of(*rows.T, 0, 2, Op.REDUCE if i in sums else Op.COPY)

    schedule = Schedule("by hand", nothing_required(where.num_nodes, 4), len(pairs), step, stands=stands)
    found = list(class_bounds(schedule, where, assumed))
    assert found == list(class_bounds(schedule, where, assumed, schedule_facts(schedule, where)))
    return found


@pytest.mark.parametrize(
    ("name", "more", "charged"),
    [
        ("common", {"message_gap": 1e-6}, True), ("published", {}, True), ("published", {"initial": "warm"}, False),
        ("oddl", {"control": "none"}, True), ("oddl", {"initial": "warm", "control": "none"}, True),
    ],
)  # fmt: skip
def test_steps_by_hand(name, more, charged):
    """LIGHTPATH, four tiles of one laser: changes of pairs, rounds of those with several partners, messages, sums."""
    where = fabric("lightpath:shape=2x2,lasers=1")
    assumed = assumptions(name, **more)
    late_s = path_latency(where, assumed).least_s
    gap_s, change_s = path_latency(where, assumed).message_gap_s, where.reconfiguration_s * charged
    moving_s, sum_s = 2 / 4 * 8 / where.node_rate_bits_per_s, (2 + 2 * 2) / 4 / assumed.memory_bytes_per_s
    sum_s *= assumed.compute != "none"
    once = late_s + gap_s
    pairs = [[(0, 1), (1, 0)], [], [(0, 2), (3, 1)], [(0, 2)], [(0, 1), (0, 2), (0, 3)], [(0, 1), (0, 2)], [(1, 0)]]
    found = steps_of(where, pairs, assumed, sums=[2])
    several = [late_s * n + gap_s * n + change_s * (n - 1) for n in (3, 2)]
    fixed = [once + change_s, 0, once + change_s, once, *several, once + change_s]
    assert [one.fixed_s for one in found] == pytest.approx(fixed)
    assert [one.moving_s for one in found] == pytest.approx(np.array([1, 0, 1, 1, 3, 2, 1]) * moving_s)
    assert [one.summing_s for one in found] == pytest.approx([0, 0, sum_s, 0, 0, 0, 0])
    beside = steps_of(where, pairs, assumed, stands=True)  # circuits are set before they are used, but the first
    assert [one.fixed_s for one in beside] == pytest.approx([fixed[0], 0, once, once, *several, once])
    first = steps_of(where, pairs[4:], assumed)
    assert first[0].fixed_s == pytest.approx(several[0] + change_s)


def test_wavelengths_of_all_links():
    """Ring of eight fibres of two wavelengths, pairs four apart: 8 x 4 links are two rounds of 16, of 5 us each."""
    where = fabric("sip_ring:nodes=8,wavelengths=2")
    assumed = assumptions("published")
    src = np.arange(8)
    far, near = ([(int(i), int((i + d) % 8)) for i in src] for d in (4, 2))
    found = steps_of(where, [far, near, far[:4]], assumed)
    late_s, change_s = path_latency(where, assumed).least_s, where.reconfiguration_s
    assert [one.fixed_s for one in found] == pytest.approx(
        [2 * late_s + 2 * change_s, late_s + change_s, late_s + change_s]
    )
    moved = np.array([max(2.0, 2 * 32 / 16), 2.0, 2.0]) / 4 * 8 / where.node_rate_bits_per_s
    assert [one.moving_s for one in found] == pytest.approx(moved)
    torus = fabric("torus:shape=3x3")
    assert steps_of(torus, [[(0, 4)]], assumed)[0].moving_s == pytest.approx(2 / 4 * 8 / torus.node_rate_bits_per_s)
    every = np.arange(9)
    far = [(int(i), int((i + 3) % 9 // 3 * 3 + (i + 1) % 3)) for i in every]  # two links away, on 36 links in all
    assert steps_of(torus, [far], assumed)[0].moving_s == pytest.approx(2 / 4 * 8 * 18 / 36 / 512e9)
    wide = fabric("lightpath:shape=2x2,lasers=2")
    (one,) = steps_of(wide, [[(0, 1), (0, 2), (0, 3)]], assumed)  # two of three partners at once
    assert one.fixed_s == pytest.approx(2 * wide.latency_s + 2 * wide.reconfiguration_s)
    in_line = fabric("ramp:groups=2,racks=1,wavelengths=2")
    for rounds, times in (("in_line", 1), ("apart", 2)):
        (one,) = steps_of(in_line, [[(1, 0), (2, 0), (3, 0)]], assumptions("published", rounds=rounds))
        assert one.fixed_s == pytest.approx(times * in_line.latency_s)
