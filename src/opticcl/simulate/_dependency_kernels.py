"""The inner loop that finds the dependencies between flows."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

TABLE = 1 << 22  # chunks that `data_needs` processes together


@njit
def data_needs(num_ranks, num_chunks, src, dst, step, lo, n, by, adds, group_of):  # type: ignore[no-untyped-def]
    """Pairs (flow, group): the group sends chunks that the flow brought to its rank in an earlier step.

    A chunk that is stored replaces earlier arrivals; chunks that are added are all needed. Ranks are processed in windows
    whose chunks fit the table.

    Args:
        num_ranks, num_chunks: of the collective [count].
        src, dst, step, lo, n, by, adds, group_of: of each flow, by: distance between its chunks; flows are sorted by step,
            those of a group are adjacent.
    """
    flows, groups = [np.int64(0)], [np.int64(0)]
    flows.pop()
    groups.pop()
    window = max(1, min(num_ranks, TABLE // num_chunks))
    newest = np.empty(window * num_chunks, np.int32)  # the last arrival of a chunk, as a place in the lists below
    arrival, before = [np.int32(0)], [np.int32(0)]
    found_for = np.full(len(src), -1, np.int32)  # group that a flow was last listed for, to list it once
    for low in range(0, num_ranks, window):
        newest[:] = -1
        arrival.clear()
        before.clear()
        end = 0
        while end < len(src):
            begin, last = end, -1
            while end < len(src) and step[end] == step[begin]:
                end += 1
            for sent in range(begin, end):
                group = group_of[sent]
                if group == last or not low <= src[sent] < low + window:
                    continue
                last = group
                at = (src[sent] - low) * num_chunks + lo[sent]
                for chunk in range(at, at + n[sent] * by[sent], by[sent]):
                    place = newest[chunk]
                    while place >= 0:
                        if found_for[arrival[place]] != group:
                            found_for[arrival[place]] = group
                            flows.append(arrival[place])
                            groups.append(group)
                        place = before[place]
            for flow in range(begin, end):
                if not low <= dst[flow] < low + window:
                    continue
                at = (dst[flow] - low) * num_chunks + lo[flow]
                for chunk in range(at, at + n[flow] * by[flow], by[flow]):
                    before.append(newest[chunk] if adds[flow] else np.int32(-1))
                    arrival.append(np.int32(flow))
                    newest[chunk] = len(arrival) - 1
    return np.array(flows), np.array(groups)
