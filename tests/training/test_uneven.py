"""Uneven all_to_alls, timed by the bytes of each pair: loads counted by hand, pair by pair, and jobs that have them."""

from collections import defaultdict
from dataclasses import replace
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.errors import BoundError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.ir.task_graph import CollectiveCall, ProcessGroup, Task, TaskGraph, Workload
from opticcl.plans.division import divide
from opticcl.plans.search import Searches
from opticcl.traces.graphs import job_of
from opticcl.training.communication import CommunicationTimes
from opticcl.training.iteration import Runtime, least_iteration_s, simulate_iteration
from opticcl.training.train import train

CIRCUITS = ("lightpath", "ocs", "oddl", "ramp", "sip_ring", "sipac", "terarack")
PACKETS = ("bcube", "dragonfly", "fat_tree", "ideal", "leaf_spine", "superpod", "topoopt", "torus")


def everybody(n):
    """The group of all ranks."""
    return ProcessGroup("all", range(n))


def drawn(n, seed, most=1_000_000):
    """A matrix in which some ranks get much more than others."""
    random = np.random.default_rng(seed)
    wanted = random.zipf(1.5, n).clip(max=50)
    parts = random.integers(0, most // 50, (n, n)) * wanted
    return tuple(map(tuple, parts.tolist()))


def busiest(matrix):
    """Bytes that the busiest rank sends to others or receives from them."""
    n = len(matrix)
    sent = [sum(matrix[i][j] for j in range(n) if j != i) for i in range(n)]
    return max(sent + [sum(matrix[i][j] for i in range(n) if j != i) for j in range(n)])


def even_size(matrix):
    """Message of an even all_to_all in which every rank moves as much as the busiest."""
    return ceil(busiest(matrix) * len(matrix) / (len(matrix) - 1))


def moving_by_hand(plan, matrix):
    """Seconds in which data moves: every block is followed from rank to rank, every round waits for its slowest part."""
    schedule, machine = plan.schedule, plan.fabric
    owner, n = schedule.collective.owner, schedule.collective.num_ranks
    each = len(owner) // n
    held = {rank: {(rank, chunk) for chunk in range(len(owner))} for rank in range(n)}
    total_s = 0.0
    for step in range(schedule.num_steps):
        sent, moved = schedule.step(step), []
        for row in range(len(sent)):
            stride = 1 if sent.chunk_step is None else int(sent.chunk_step[row])
            chunks = {int(sent.chunk_lo[row]) + k * stride for k in range(int(sent.chunk_n[row]))}
            moved.append({block for block in held[int(sent.src[row])] if block[1] in chunks})
        size = [sum(matrix[origin][owner[chunk]] / each for origin, chunk in blocks) for blocks in moved]
        for row, blocks in enumerate(moved):
            held[int(sent.src[row])] -= blocks
        for row, blocks in enumerate(moved):
            held[int(sent.dst[row])] |= blocks
        for circuits in plan.circuits.rounds(step):
            rows = circuits.transfer.tolist()
            if machine.is_packet_switched:
                loads = defaultdict(float)
                for i, row in enumerate(rows):
                    for hop in circuits.path(i).tolist():
                        loads[hop] += size[row] / rows.count(row)
                total_s += max(load * 8 / rate_of(machine, hop) for hop, load in loads.items())
                continue
            wavelengths = defaultdict(int)
            for row, count in zip(rows, circuits.wavelength_n.tolist(), strict=True):
                wavelengths[row] += count if row >= 0 else 0
            slowest = max(size[row] / count for row, count in wavelengths.items() if row >= 0)
            slots = machine.slot_s and ceil(slowest / machine.slot_payload_bytes)
            total_s += slots * machine.slot_s if machine.slot_s else slowest * 8 / machine.rate_bits_per_s
    assert all(owner[chunk] == rank for rank, blocks in held.items() for _, chunk in blocks)
    return total_s


def rate_of(machine, hop):
    """Rate of a link, which are numbered kind by kind [bit/s]."""
    for kind in machine.resources:
        if hop < kind.count:
            return kind.capacity
        hop -= kind.count
    raise AssertionError(hop)


@pytest.mark.parametrize("name", [*CIRCUITS, *PACKETS])
@pytest.mark.parametrize(("n", "seed"), [(8, 1), (16, 2)])
def test_loads_of_every_fabric(name, n, seed):
    """Latency, control and changes are those of the even exchange; never less than the busiest port, or than zero bytes."""
    machine, matrix = fabric_at_scale(name, n, "400 Gb/s"), drawn(n, seed)
    times = CommunicationTimes(machine)
    message = "all_to_all", everybody(machine.num_nodes), even_size(matrix)
    even_s, even_moving_s = times(*message), times.moving_s(*message)
    took_s = times(*message, matrix)
    (use,) = times.used()
    assert use.verdict.ok
    assert (use.messages, use.uneven) == (2, 1)
    due_s = moving_by_hand(use.plan, matrix)
    port_s = busiest(matrix) * 8 / machine.node_rate_bits_per_s
    assert took_s == pytest.approx(even_s - even_moving_s + due_s, rel=1e-9)
    assert took_s >= times.moving_s(*message, matrix) >= times.least_s(*message, matrix) == pytest.approx(port_s)


@pytest.mark.parametrize("name", [*CIRCUITS, *PACKETS])
@pytest.mark.parametrize("size", [0, 16 * 4096, 16 * 10_000_000])
def test_equal_parts_take_as_long_as_an_even_exchange(name, size):
    """By every plan, whatever a rank keeps for itself."""
    machine = fabric_at_scale(name, 16, "400 Gb/s")
    times, part = CommunicationTimes(machine), size // 16
    matrix = tuple(tuple(part if i != j else 7 * part for j in range(16)) for i in range(16))
    even_s = times("all_to_all", everybody(16), size)
    assert times("all_to_all", everybody(16), size, matrix) == pytest.approx(even_s, rel=1e-9)


@examples(30)
@given(st.data())
def test_routes_of_a_torus(data):
    """Dimension by dimension the shorter way round, written here; of two ways as long, up from even nodes and down from odd."""
    shape = data.draw(st.sampled_from([(4, 4), (2, 3), (5, 3), (4, 2, 3)]))
    n = int(np.prod(shape))
    rows = st.lists(st.integers(0, 10**6), min_size=n, max_size=n)
    matrix = tuple(map(tuple, data.draw(st.lists(rows, min_size=n, max_size=n))))
    loads = defaultdict(int)
    for src in np.ndindex(shape):
        for dst in np.ndindex(shape):
            at = list(src)
            for k, side in enumerate(shape):
                up = (dst[k] - at[k]) % side
                way = 1 if 2 * up < side or (2 * up == side and (side == 2 or at[k] % 2 == 0)) else -1
                while at[k] != dst[k]:
                    loads[tuple(at), k, way] += matrix[np.ravel_multi_index(src, shape)][
                        np.ravel_multi_index(dst, shape)
                    ]
                    at[k] = (at[k] + way) % side
    machine = fabric("torus", shape=shape)
    times = CommunicationTimes(machine, Searches("mesh"))
    message = "all_to_all", everybody(n)
    none = tuple((0,) * n for _ in range(n))
    moved_s = times(*message, even_size(matrix), matrix) - times(*message, 0, none)
    assert moved_s == pytest.approx(max(loads.values()) * 8 / machine.rate, rel=1e-6, abs=1e-15)


def test_groups_of_a_kind_at_the_same_time():
    """Both halves of a machine exchange the same parts: not faster than one alone, and each port moves its own bytes."""
    machine, matrix = fabric("oddl", shape=(4, 4)), drawn(8, 3)
    times = CommunicationTimes(machine, groups="machine")
    both = ProcessGroup("half", range(8), num_groups=2)
    message = "all_to_all", both, even_size(matrix)
    assert times(*message, matrix) >= times.least_s(*message, matrix)
    alone = CommunicationTimes(machine, groups="machine")(
        "all_to_all", ProcessGroup("half", range(8)), message[2], matrix
    )
    assert times(*message, matrix) >= alone * (1 - 1e-9)


def workload(matrices, ranks=(), compute_s=0.0, n=4):
    """A job of all_to_alls, one after the other."""
    calls = [
        CollectiveCall(f"call {i}", "all_to_all", even_size(m), ranks=ranks, matrix_bytes=m)
        for i, m in enumerate(matrices)
    ]
    return Workload("job", "drawn", tuple(calls), num_ranks=n, compute_s=compute_s)


@examples(20)
@given(st.permutations(range(4)), st.integers(0, 99))
def test_rows_are_those_of_the_members(order, seed):
    """Members of a group in any order: what a rank sends to another one does not change."""
    matrix = drawn(4, seed)
    permuted = tuple(tuple(matrix[i][j] for j in order) for i in order)
    (one,), (other,) = (
        job_of(workload([m], ranks)).tasks for m, ranks in ((matrix, (0, 1, 2, 3)), (permuted, tuple(order)))
    )
    assert one.matrix_bytes == other.matrix_bytes == matrix


def test_the_iteration_of_a_job():
    """Calls add up; calls of one size and other parts are no batch; the bound has the bytes of each rank."""
    matrices = [((0, 9, 1), (2, 0, 8), (3, 3, 0)), ((0, 1, 9), (8, 0, 2), (3, 3, 0)), ((0, 5, 5), (5, 0, 5), (5, 5, 0))]
    matrices = [tuple(tuple(10**6 * x for x in row) for row in m) for m in matrices]
    job = job_of(workload(matrices, n=3))
    assert [task.matrix_bytes for task in job.tasks] == [*matrices[:2], ()]
    machine = fabric_at_scale("ideal", 3, "100 Gb/s")
    times = CommunicationTimes(machine, Searches(assumptions="published"))
    iteration = simulate_iteration(job, times, Runtime(fusion="none"))
    alone = [times("all_to_all", everybody(3), task.size_bytes, task.matrix_bytes) for task in job.tasks]
    assert iteration.total_s == pytest.approx(sum(alone))
    assert least_iteration_s(job, times) == pytest.approx((12 + 11 + 10) * 1e6 * 8 / 100e9)
    (row,) = train(job, ["ideal:nodes=3"]).rows
    assert sum(use.uneven for use in row.plans) == 2


def test_two_ranks_with_traces_of_their_own_are_bounded_each():
    """Rank 0 sends the first message and receives the second: its bytes are not the sum of both busiest ranks'."""
    matrices = (((0, 9, 0), (0, 0, 0), (0, 0, 0)), ((0, 0, 0), (0, 0, 9), (0, 0, 0)))
    tasks = [
        Task(f"call {i}", 0.0, "all_to_all", even_size(m), "all", matrix_bytes=m, devices=(0, 1, 2))
        for i, m in enumerate(matrices)
    ]
    job = TaskGraph("job", "", 3, tuple(tasks), {"all": everybody(3)}, device_ranks=(0, 1, 2))
    times = CommunicationTimes(fabric_at_scale("ideal", 3, "100 Gb/s"), Searches(assumptions="published"))
    assert least_iteration_s(job, times) == pytest.approx(9 * 8 / 100e9)
    one = replace(job, device_ranks=(), tasks=tuple(replace(task, devices=(0,)) for task in tasks))
    assert least_iteration_s(one, times) == pytest.approx(18 * 8 / 100e9)


def test_a_comparison_says_that_parts_are_taken_as_even():
    """Which has one size for a message."""
    division = divide(workload([drawn(4, 1), drawn(4, 2), tuple((5,) * 4 for _ in range(4))]))
    assert division.record()["uneven"] == 2
    assert any(note.startswith("uneven all_to_all: 2, compared as even ones") for note in division.notes())


def test_messages_planned_together_have_their_parts():
    """Never slower than each alone; the messages have the times of their parts, not of even ones."""
    matrices = [drawn(8, seed, 10**7) for seed in range(4)]
    job = job_of(workload(matrices, compute_s=1e-3, n=8))
    even = replace(job, tasks=tuple(replace(task, matrix_bytes=()) for task in job.tasks))
    machine = fabric("ocs", nodes=8)
    (row,), (whole,) = (train(one, [machine], together=True).rows for one in (job, even))
    assert row.together.iteration.total_s <= row.iteration.total_s * (1 + 1e-9)
    assert row.together.iteration.total_s != pytest.approx(whole.together.iteration.total_s, rel=1e-3)
    assert sum(use.uneven for use in row.plans) == 4


def test_a_time_below_the_busiest_port_is_refused():
    """A rate that a node does not have is a defect of what computed it."""

    class Faster(CommunicationTimes):
        def __call__(self, *message):
            return super().__call__(*message) / 3

        def moving_s(self, *message):
            return super().moving_s(*message) / 3

    job = job_of(workload([drawn(4, 5, 10**8)]))
    with pytest.raises(BoundError, match="below the lower bound"):
        simulate_iteration(job, Faster(fabric("ideal", nodes=4)), Runtime(fusion="none"))
