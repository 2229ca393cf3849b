"""Next events and ends of flows beside dictionaries of their times."""

from math import inf

import numpy as np
import pytest
from tests.interpreted import interpreted

from opticcl.simulate import _event_kernels as kernels
from opticcl.simulate import _heap_kernels

FLOWS = 12


@pytest.fixture(autouse=True)
def _plainly():
    with interpreted(kernels, _heap_kernels):
        yield


# --- next events ------------------------------------------------------------------------------------------------------


def pop_all(events, due, count):
    """Remove that many events, each at the first time of all; buckets that are empty are freed on the way."""
    while count and due:
        first_s = kernels.first_event_s(events)
        flow = kernels.pop_event(events)
        if flow >= 0:
            assert due.pop(int(flow)) == first_s <= min(due.values(), default=inf)
            count -= 1


def free_all(events, flows=FLOWS):
    """Without events all buckets can be freed, each once."""
    while events.num_queued[0]:
        assert kernels.pop_event(events) == -1
    assert kernels.first_event_s(events) == inf
    assert sorted(events.spare[: events.num_spare[0]].tolist()) == list(range(flows + 1))


@pytest.mark.parametrize("times", [1, 3, 8, 20, 1000])
def test_events_come_in_order_of_their_times(times):
    """Pushed at few or many times, at or after that of the last event, popped in between, and again; none is lost."""
    draw = np.random.default_rng(times)
    events, due = kernels.events_of(2 * FLOWS), {}
    for _ in range(12):
        now = kernels.first_event_s(events) if due else 0.0
        for flow in draw.permutation(FLOWS)[: draw.integers(1, FLOWS + 1)].tolist():
            if flow not in due:
                due[flow] = now + draw.integers(0, times) / 4
                kernels.push_event(events, flow, due[flow])
        pop_all(events, due, draw.integers(0, FLOWS))
    pop_all(events, due, FLOWS)
    free_all(events, 2 * FLOWS)


def test_events_of_one_time_share_a_bucket():
    """As many times as are kept, from the first on; another one later than all takes the place of one of them."""
    events = kernels.events_of(FLOWS)
    for flow in (0, 1):
        kernels.push_event(events, flow, 1.0)
    assert events.num_queued[0] == 1
    events = kernels.events_of(FLOWS)
    for flow in range(FLOWS):
        kernels.push_event(events, flow, flow % kernels.RECENT + 1.0)
    assert (events.num_queued[0], events.num_spare[0]) == (kernels.RECENT, FLOWS + 1 - kernels.RECENT)
    due = {flow: flow % kernels.RECENT + 1.0 for flow in range(FLOWS)}
    pop_all(events, due, 2)
    assert kernels.pop_event(events) == -1  # of time 1
    for flow, time in ((0, 99.0), (kernels.RECENT, 2.0)):
        due[flow] = time
        kernels.push_event(events, flow, time)
    assert events.num_queued[0] == kernels.RECENT
    pop_all(events, due, FLOWS)
    free_all(events)


def test_every_flow_has_a_bucket_beside_one_that_is_empty():
    """All at different times; the one that is popped has another event before its bucket is freed."""
    events, due = kernels.events_of(FLOWS), {}
    for flow in range(FLOWS):
        due[flow] = float(flow)
        kernels.push_event(events, flow, due[flow])
    pop_all(events, due, 1)
    due[0] = 2.5
    kernels.push_event(events, 0, 2.5)
    assert (events.num_queued[0], events.num_spare[0]) == (FLOWS + 1, 0)
    pop_all(events, due, FLOWS)
    free_all(events)


# --- ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scans", [False, True])
@pytest.mark.parametrize("slots", [1, 2, 4, 9, 32])
@pytest.mark.parametrize("times", [2, 50])
def test_the_slot_that_ends_first(monkeypatch, scans, slots, times):
    """Slots get an end, then a sooner or a later one; the first is dropped, and its slot used again."""
    monkeypatch.setattr(kernels, "BLOCK", 2)
    draw = np.random.default_rng(slots * times)
    ends, due = kernels.ends_of(slots, scans), {}
    for _ in range(100):
        assert kernels.first_end(ends) == -1 if not due else due[kernels.first_end(ends)] == min(due.values())
        if not due or (draw.random() < 0.7 and len(due) < slots):
            slot = int(draw.integers(slots))
            is_new, due[slot] = slot not in due, float(draw.integers(times))
            kernels.set_end(ends, slot, due[slot], is_new)
        else:
            slot = kernels.first_end(ends)
            del due[int(slot)]
            kernels.drop_first_end(ends, slot)
        assert ends.num_queued[0] == len(due)
        if not scans:
            assert [ends.queue[ends.place_of[slot]] for slot in due] == list(due)
    while due:
        slot = kernels.first_end(ends)
        assert due.pop(int(slot)) <= min(due.values(), default=inf)
        kernels.drop_first_end(ends, slot)
    assert kernels.first_end(ends) == -1


def test_room_for_ends():
    """Blocks of 128 slots, the last of them begun, where blocks are scanned; else a heap."""
    scanned, queued = kernels.ends_of(300, True), kernels.ends_of(300, False)
    assert [len(ends.queue) for ends in (scanned, queued)] == [0, 300]
    assert [len(ends.block_time) for ends in (scanned, queued)] == [3, 0]
    for slot, time in ((127, 3.0), (128, 2.0), (299, 1.0)):
        kernels.set_end(scanned, slot, time, True)
        assert kernels.first_end(scanned) == slot
