"""The inner loops of list scheduling: one step of a plan, its circuits in the order of the plan.

Circuits that start together are an item: those of one transfer, and those of one split signal. Arrays of the state are changed
in place; see `opticcl.simulate.device.list_schedule` for their meaning.
"""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

COPY, MOVE = 0, 2
NEVER = -np.inf
UNSET = np.iinfo(np.int64).min


@njit
def read_chunks(  # type: ignore[no-untyped-def]
    src, dst, lo, n, by, op, ready, ready_by, left, copied, there_s, there_by, no_sooner_s
):
    """When what each transfer sends is there, and before when it must not arrive; moved chunks are given up.

    Args:
        src, dst, lo, n, by, op: of the transfers of a step; by: distance between their chunks.
        ready, ready_by: of every rank and chunk: complete since [s], and the transfer that completed it.
        left, copied: of every rank and chunk: last send has left, last copy arrived [s].
        there_s, there_by, no_sooner_s: results.
    """
    for t in range(len(src)):
        there_s[t], there_by[t], no_sooner_s[t] = 0.0, -1, NEVER
        for c in range(lo[t], lo[t] + n[t] * by[t], by[t]):
            if ready[src[t], c] > there_s[t]:
                there_s[t], there_by[t] = ready[src[t], c], ready_by[src[t], c]
            d = dst[t]
            no_sooner_s[t] = max(no_sooner_s[t], left[d, c])
            no_sooner_s[t] = max(no_sooner_s[t], ready[d, c] if op[t] == COPY else copied[d, c])
    for t in range(len(src)):
        if op[t] & MOVE:
            for c in range(lo[t], lo[t] + n[t] * by[t], by[t]):
                ready[src[t], c], copied[src[t], c] = NEVER, NEVER


@njit
def place_items(  # type: ignore[no-untyped-def]
    item_at, circuit_transfer, latency_s, duration_s, charged_s, on_change, exchanged, control_s, units_at, units, uses_at,
    use_first, use_pool, use_setting, use_offset_s, use_time_s, unit_s, unit_from_s, unit_by, setting, set_s, dark_s,
    there_s, there_by, no_sooner_s, first_flow, slot_s, warm, at_arrival, early, beside, shared_buffers,
    released_s, released_by, control_from_s, start_s, changes, changes_s, taken,
    marked, marks,
):  # fmt: skip
    """Place the items of one round, each as early as it can start.

    Args:
        item_at: circuits of item i are item_at[i] .. item_at[i + 1] - 1.
        circuit_transfer, latency_s, duration_s, charged_s: of each circuit; charged_s: setting time that it is charged.
        exchanged: whether a circuit is charged a control exchange even if no device changes.
        control_s: of the exchange of this round.
        units_at, units: resources that each circuit occupies.
        uses_at, use_*: uses of devices of each circuit.
        unit_s, unit_by: since when each resource is free, and the transfer that freed it.
        setting, set_s, dark_s: of each device: its setting, since when it is complete, until when light passes.
        there_s, there_by, no_sooner_s: of each transfer of the step, as of `read_chunks`.
        first_flow: number of the step's first transfer.
        slot_s: time slot, 0 for none.
        warm: whether first settings stand from the start.
        at_arrival: whether a resource is free once the last bit has arrived; else once it has left.
        early: whether devices are set while data is awaited.
        beside: whether devices are set during the control exchange.
        shared_buffers: whether a transfer must not arrive before the chunks that it changes have left.
        released_s, released_by, control_from_s, start_s: results, of each circuit.
        changes, changes_s: results, of each change of a device: member and new setting, int64 (2, uses of the round); begin
            and end, float64 (2, uses of the round) [s].
        taken: member that each use takes, scratch.
        marked, marks: last round that took each member of a pool, and the number of this one: circuits of a round take
            different members.
    Returns: number of changes.
    """
    num_changes = 0
    for item in range(len(item_at) - 1):
        first, last = item_at[item], item_at[item + 1]
        there, there_from = 0.0, -1
        free, free_s, free_from = 0.0, 0.0, -1
        charged = 0.0
        differs, exchanges = False, False  # whether a device has another setting; whether control is exchanged anyhow
        for c in range(first, last):
            t = circuit_transfer[c]
            charged = max(charged, charged_s[c])
            exchanges = exchanges or exchanged[c]
            if t >= 0 and there_s[t] > there:
                there, there_from = there_s[t], there_by[t]
            for k in range(units_at[c], units_at[c + 1]):
                if unit_s[units[k]] > free:
                    free, free_s, free_from = unit_s[units[k]], unit_from_s[units[k]], unit_by[units[k]]
        release = max(there, free)
        counted_s, by = (there, there_from) if there >= free_s else (free_s, free_from)
        # members
        for c in range(first, last):
            for k in range(uses_at[c], uses_at[c + 1]):
                best, best_s, best_stands = -1, np.inf, False
                for m in range(use_first[k], use_first[k] + use_pool[k]):
                    if marked[m] == marks:
                        continue
                    stands = setting[m] == use_setting[k] or (warm and setting[m] == UNSET)
                    set_from = 0.0 if early else release
                    changed = max(dark_s[m], set_from) + use_time_s[k]
                    kept = max(set_s[m], dark_s[m] if use_pool[k] > 1 else 0.0)
                    since = max(kept if stands else changed, release + use_offset_s[k])
                    sooner = since < best_s or (since == best_s and stands and not best_stands)
                    if on_change and stands != best_stands:  # a change is charged, so what stands comes first
                        sooner = stands
                    if sooner:
                        best, best_s, best_stands = m, since, stands
                if best < 0:
                    best, best_stands = use_first[k], False
                taken[k] = best
                if use_pool[k] > 1:
                    marked[best] = marks
                differs = differs or not best_stands
        if on_change and not differs:
            charged = 0.0
            for c in range(first, last):
                charged_s[c] = 0.0
        # control, then settings
        needs_control = control_s > 0 and (differs or exchanges)
        control_from = there if early else release
        agreed = control_from + (control_s if needs_control else 0.0)
        set_from = control_from if beside else agreed
        start = max(release, agreed, set_from + charged)
        if early and not needs_control:
            set_from = 0.0
        for c in range(first, last):
            for k in range(uses_at[c], uses_at[c + 1]):
                m = taken[k]
                if setting[m] == use_setting[k] or (warm and setting[m] == UNSET):
                    since = max(set_s[m], dark_s[m]) if use_pool[k] > 1 else set_s[m]
                else:
                    since = max(dark_s[m], set_from) + use_time_s[k]
                start = max(start, since - use_offset_s[k])
        if shared_buffers:
            for c in range(first, last):
                t = circuit_transfer[c]
                if t >= 0:
                    start = max(start, no_sooner_s[t] - latency_s[c] - duration_s[c])
        if slot_s > 0:
            start = np.ceil(start / slot_s * (1 - 1e-9)) * slot_s
        for c in range(first, last):
            released_s[c], released_by[c], start_s[c] = counted_s, by, start
            control_from_s[c] = control_from if needs_control else np.inf
            for k in range(uses_at[c], uses_at[c + 1]):
                m = taken[k]
                light = start + use_offset_s[k]
                if setting[m] != use_setting[k]:
                    begins, time_s = max(dark_s[m], set_from), use_time_s[k]
                    if use_pool[k] > 1 or not early:
                        begins = max(begins, light - time_s)  # as late as it may: others may use it before
                    if warm and setting[m] == UNSET and time_s > 0:
                        begins, time_s = 0.0, 0.0
                    changes[0, num_changes], changes[1, num_changes] = m, use_setting[k]
                    changes_s[0, num_changes], changes_s[1, num_changes] = begins, begins + time_s
                    num_changes += 1
                    set_s[m], setting[m] = begins + time_s, use_setting[k]
                dark_s[m] = max(dark_s[m], light + max(duration_s[c], slot_s))  # a slot is used wholly
    for c in range(item_at[0], item_at[-1]):
        idle = circuit_transfer[c] < 0
        end = start_s[c] + max(duration_s[c] + (latency_s[c] if at_arrival and not idle else 0.0), slot_s)
        for k in range(units_at[c], units_at[c + 1]):
            if end > unit_s[units[k]]:
                unit_s[units[k]], unit_from_s[units[k]] = end, released_s[c] if idle else end
                unit_by[units[k]] = released_by[c] if idle else first_flow + circuit_transfer[c]
    return num_changes


@njit
def write_chunks(  # type: ignore[no-untyped-def]
    src, dst, lo, n, by, op, left_s, arrived_s, first_flow, job_at, job_rows, job_rank, job_chunks, chunk_s, memory_s, ready,
    ready_by, left, copied, summed_s,
):  # fmt: skip
    """After a step: what arrives takes its place once its chunk has left, sums queue at the memory of their rank.

    Args:
        src, dst, lo, n, by, op: of the transfers of the step, as of `read_chunks`.
        left_s, arrived_s: of each transfer; arrived_s is raised to the time when its data is in place.
        first_flow: number of the step's first transfer.
        job_at, job_rows: transfers that job j sums are job_rows[job_at[j]:job_at[j + 1]].
        job_rank, job_chunks: rank of each job, and chunks that its memory moves.
        chunk_s: time to move a chunk.
        memory_s: since when the memory of each rank is free.
        ready, ready_by, left, copied: as of `read_chunks`.
        summed_s: result.
    """
    for t in range(len(src)):
        for c in range(lo[t], lo[t] + n[t] * by[t], by[t]):
            left[src[t], c] = max(left[src[t], c], left_s[t])
    for t in range(len(src)):
        for c in range(lo[t], lo[t] + n[t] * by[t], by[t]):
            arrived_s[t] = max(arrived_s[t], left[dst[t], c])
        summed_s[t] = arrived_s[t]
    jobs = len(job_rank)
    release = np.zeros(jobs)
    for j in range(jobs):
        for k in range(job_at[j], job_at[j + 1]):
            release[j] = max(release[j], arrived_s[job_rows[k]])
    for j in np.argsort(release, kind="mergesort"):
        begin = max(release[j], memory_s[job_rank[j]])
        end = begin + job_chunks[j] * chunk_s
        memory_s[job_rank[j]] = end
        for k in range(job_at[j], job_at[j + 1]):
            summed_s[job_rows[k]] = max(summed_s[job_rows[k]], end)
    for t in range(len(src)):
        for c in range(lo[t], lo[t] + n[t] * by[t], by[t]):
            d = dst[t]
            if op[t] == COPY:
                ready[d, c], copied[d, c], ready_by[d, c] = arrived_s[t], arrived_s[t], first_flow + t
            elif summed_s[t] >= ready[d, c]:
                ready[d, c], ready_by[d, c] = summed_s[t], first_flow + t
