"""What is in a trace: sentence, tables of calls, groups, steps and ranks, the streams of each rank over time, and a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.ir.task_graph import BOUND_WORDS
from opticcl.report.kit import html as _html
from opticcl.report.kit.colours import PART_COLOURS
from opticcl.report.kit.columns import Column, FittedTable, Shown, columns_of
from opticcl.report.kit.drawing import WIDTH, axes_at, name_rows, new_figure, write_key, write_scale
from opticcl.report.kit.line_ends import text_width
from opticcl.report.kit.result import Result
from opticcl.report.kit.svg import to_svg
from opticcl.units import counted, format_bytes, format_rate, format_seconds, part_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.ir import ProgressCallback
    from opticcl.traces.contents import TraceContents
    from opticcl.traces.recording import RankTrace

__all__ = ["TraceReport"]

MOST_ROWS = 16
"""Rows of a table in the terminal, and ranks of a picture [count]."""

MOST_STREAMS = 64
"""Rows of a picture [count]."""

RESOLUTION = 2_000
"""Parts of the time axis of a picture; gaps shorter than one are closed [count]."""

COLOURS = {"computes": PART_COLOURS["transfer"], "messages": PART_COLOURS["compute"]}

Floats = npt.NDArray[np.float64]


class _Stream(NamedTuple):
    """A queue of a device, over time.

    Args:
        name: of the rank and the queue.
        kind: "computes" or "messages".
        start_s, end_s: of what ran on it, float64 (n,) [s].
    """

    name: str
    kind: str
    start_s: Floats
    end_s: Floats


@dataclass(frozen=True, slots=True)
class TraceReport(Result):
    """What is in a trace.

    Args: contents: as it was read.
    """

    contents: TraceContents

    @property
    def answer(self) -> str:
        """Ranks, steps, calls, bytes and exposed communication, in a sentence."""
        work, steps = self.contents.workload, len(self.contents.steps)
        recorded, count = len({trace.rank for trace in self.contents.traces if trace.rank >= 0}), work.num_ranks
        ranks = counted(count, "rank") if count else "an unknown number of ranks (--nodes gives it)"
        ranks += f", {recorded:,} of them recorded" if 0 < recorded < count else ""
        kinds = Counter[str]()
        for row in self.contents.by_kind():
            kinds[row["collective"]] += row["calls"]
        calls = ", ".join(f"{name} {number:,}" for name, number in kinds.most_common(4))
        calls += f" and {counted(len(kinds) - 4, 'other kind')}" if len(kinds) > 4 else ""
        parts = [ranks, *([counted(steps, "step")] if steps else [])]
        parts += [f"{counted(len(work.calls), 'call')} ({calls})", format_bytes(work.total_bytes)]
        return f"{', '.join(parts)}; {self._exposed()}."

    def _exposed(self) -> str:
        """How much of a step is exposed communication, or why that is unknown."""
        median = self.contents.median
        recorded = median.recorded if median else None
        took_s = sum(row["measured_s"] or 0.0 for row in self.contents.by_kind())
        if not (median.compute_s if median else self.contents.workload.compute_s):
            return "communication only" + (f", {format_seconds(took_s)} in all" if took_s else ", without times")
        if median is not None and recorded is not None and recorded.exposed_s is not None and recorded.total_s:
            doubt = ", which may be too high or too low" if median.bound == "estimate" else ""
            part = part_of(recorded.exposed_s, recorded.total_s)
            return f"{BOUND_WORDS[median.bound]}{part} of a step is exposed communication{doubt}"
        if took_s:
            return f"calls take {format_seconds(took_s)} in all; what of it is exposed is not known without starts"
        return "what is exposed is not known, since no call has a time"

    def record(self) -> dict[str, Any]:
        """The answer, calls, groups, steps and ranks, and what is left out, as plain values."""
        contents, work, median = self.contents, self.contents.workload, self.contents.median
        return {
            "headline": self.answer,
            "name": work.name,
            "source": work.source,
            "num_ranks": work.num_ranks or None,
            "num_ranks_source": work.ranks_source or None,
            "calls": len(work.calls),
            "bytes": work.total_bytes,
            "bound": (median.bound or None) if median else None,
            "kinds": contents.by_kind(),
            "groups": contents.by_group(),
            "steps": contents.by_step(),
            "ranks": contents.by_rank(),
            "left_out": [
                {"what": one.what, "calls": one.calls, "bytes": one.size_bytes, "takes_time": one.missing}
                for one in work.omitted
            ],
            "notes": self.lines(),
        }

    def lines(self) -> list[str]:
        """Notes of the readers: where ranks and groups come from, what was left out and why, in what order tasks are."""
        median = self.contents.median
        return list(median.notes if median else self.contents.workload.notes)

    def blocks(self) -> Iterable[Any]:
        """The answer, the tables, and the notes."""
        yield self.answer
        for title, columns in self.tables():
            yield ""
            whole = len(columns[0].cells)
            more = f"{whole - MOST_ROWS:,} more rows; --json lists all" if whole > MOST_ROWS else ""
            cut = [Column(one.header, one.cells[:MOST_ROWS], one.rank, one.justify) for one in columns]
            yield FittedTable(cut, more, heading=title)
        yield ""
        yield from self.lines()

    def tables(self) -> list[tuple[str, list[Column]]]:
        """Heading and columns of each table; without columns in which nothing is known."""
        contents = self.contents
        sums = (Shown("calls"), Shown("bytes", form=format_bytes))
        sizes = Shown("smallest_bytes", "smallest", 2, format_bytes), Shown("largest_bytes", "largest", 2, format_bytes)
        times = Shown("measured_s", "time"), Shown("rate_bits_per_s", "bytes over time", 3, format_rate)
        step = (
            *(Shown("computed_s", "computation", form=_seconds), Shown("communication_s", "messages", form=_seconds)),
            *(Shown("exposed_s", "exposed"), Shown("idle_s", "idle"), Shown("iteration_s", "step")),
            *(Shown("hidden_share", "hidden", 2, ".0%"), Shown("skew_s", "waits for ranks", 3)),
            Shown("host_s", "waits for host", 3),
        )
        shown = [
            ("Calls", contents.by_kind(), (Shown("collective"), Shown("ranks"), *sums, *sizes, *times)),
            (
                "Groups",
                [one | {"members": _members(one["members"], one["size"])} for one in contents.by_group()],
                (Shown("group"), Shown("size", "ranks"), *sums, times[0], Shown("members"), Shown("source", rank=2)),
            ),
            ("Steps", contents.by_step(), (Shown("step", "name"), *sums, *step, Shown("bound", rank=4))),
            ("Ranks", contents.by_rank(), (Shown("rank", none="all"), Shown("file", rank=4), Shown("calls"), *step)),
        ]
        return [(title, _known(rows, values)) for title, rows, values in shown if rows]

    @property
    def label(self) -> str:
        """Text alternative of the picture."""
        return f"Streams of {self.contents.workload.name} over time: {self.answer}"

    def figure(self) -> Figure:
        """The streams of each rank over time.

        Raises: OutputError: no start is recorded.
        """
        streams = list(_streams(self.contents.traces))
        if not streams:
            raise OutputError(
                f"--out: no picture of {self.contents.workload.name}: no call or kernel has a recorded start; leave it out"
            )
        return _drawn(streams, self.contents)

    def write_page(self, path: Path, progress: ProgressCallback) -> None:
        """Write the page, whole or not at all.

        Args:
            path: of the file.
            progress: called with a line of text before each part of the work.
        Raises: OutputError: the file cannot be written.
        """
        progress("draw the page")
        sections = [_html.Section(title.lower(), title, _html.table(columns)) for title, columns in self.tables()]
        if any(True for _ in _streams(self.contents.traces)):
            drawn = _html.figure(to_svg(self.figure, "streams", self.label), "Gaps shorter than a pixel are closed.")
            sections.insert(0, _html.Section("timeline", "Streams over time", drawn))
        with write_whole(path) as file:
            file.write(_html.page(self.contents.workload.name, self.answer, self.lines(), sections).encode())


def _seconds(seconds: float) -> str:
    """A time, "-" for none."""
    return format_seconds(seconds) if seconds else "-"


def _known(rows: Sequence[dict[str, Any]], values: Sequence[Shown]) -> list[Column]:
    """The columns in which a value is known; the first one always.

    Args:
        rows: plain values.
        values: in the order of the columns.
    """
    first, *rest = values
    return columns_of(rows, first, *(one for one in rest if any(row.get(one.key) for row in rows)))


def _members(ranks: Sequence[int], size: int | None) -> str:
    """Ranks of a group, as a range with a step where they are one.

    >>> _members([0, 1, 2, 3], 4), _members([0, 4, 8], 3), _members([0, 1, 5], 3), _members(list(range(64)), 128)
    ('0-3', '0-8:4', '0,1,5', '0-63, ...')

    Args:
        ranks: the first of them.
        size: of the group; None if unknown [count].
    """
    steps = {b - a for a, b in pairwise(ranks)}
    more = ", ..." if size and size > len(ranks) > 0 else ""
    if len(ranks) > 2 and len(steps) == 1 and (step := steps.pop()) > 0:
        return f"{ranks[0]}-{ranks[-1]}" + (f":{step}" if step > 1 else "") + more
    shown = ",".join(map(str, ranks[:8]))
    return shown + (", ..." if len(ranks) > 8 else more)


def _streams(traces: Sequence[RankTrace]) -> Iterable[_Stream]:
    """The queues of the first ranks that recorded starts: of computation, then of messages, each by its number."""
    for trace in traces[:MOST_ROWS]:
        rank = f"rank {trace.rank}, " if trace.rank >= 0 else ""
        if trace.kernels is not None:
            for number in np.unique(trace.kernels.stream).tolist():
                mine = trace.kernels.stream == number
                name = f"stream {number}" if number >= 0 else "kernels"
                yield _Stream(rank + name, "computes", trace.kernels.start_s[mine], trace.kernels.end_s[mine])
        timed = [call for call in trace.calls if call.end_s > call.start_s >= 0]
        for number in sorted({call.stream for call in timed}):
            start_s, end_s = np.array([(c.start_s, c.end_s) for c in timed if c.stream == number]).T
            yield _Stream(f"{rank}messages {number}" if number else f"{rank}messages", "messages", start_s, end_s)


def _merged(stream: _Stream, least_s: float) -> list[tuple[float, float]]:
    """Start and length of the bars of a stream, gaps below a length closed [s].

    Args:
        stream: with its intervals.
        least_s: shortest gap that is kept, and shortest bar [s].
    """
    order = np.argsort(stream.start_s, kind="stable")
    start_s, until_s = stream.start_s[order], np.maximum.accumulate(stream.end_s[order])
    begins = np.flatnonzero(np.concatenate([[True], start_s[1:] > until_s[:-1] + least_s]))
    ends = np.concatenate([begins[1:] - 1, [len(start_s) - 1]])
    lengths = np.maximum(until_s[ends] - start_s[begins], least_s)
    return list(zip(start_s[begins].tolist(), lengths.tolist(), strict=True))


def _drawn(streams: Sequence[_Stream], contents: TraceContents) -> Figure:
    """The picture of streams, the first `MOST_STREAMS` of them.

    Args:
        streams: at least one.
        contents: whose they are.
    """
    shown = streams[:MOST_STREAMS]
    first_s = min(float(one.start_s.min()) for one in shown)
    last_s = max(float(one.end_s.max()) for one in shown)
    height = 1.5 + 0.24 * len(shown)
    ranks, all_ranks = min(len(contents.traces), MOST_ROWS), len(contents.traces)
    of_all = f"the first {ranks} of {all_ranks:,} recorded ranks" if ranks < all_ranks else ""
    of_streams = f"{len(shown)} of {len(streams):,} streams" if len(shown) < len(streams) else ""
    clocks = "each rank by its own clock" if all_ranks > 1 else ""
    meaning = "a bar is a kernel or a message, or several without a visible gap"
    remark = "; ".join(filter(None, [meaning, clocks, of_all, of_streams]))
    figure = new_figure(height, f"{contents.workload.name}: streams over time", remark)
    names = [one.name for one in shown]
    left = text_width(names) + 0.15
    axes = axes_at(figure, left, 0.45, WIDTH - left - 0.2, 0.24 * len(shown))
    for row, one in enumerate(shown):
        bars = [(at - first_s, took) for at, took in _merged(one, (last_s - first_s) / RESOLUTION)]
        axes.broken_barh(bars, (row - 0.36, 0.72), facecolors=COLOURS[one.kind], linewidth=0)
    axes.set_xlim(0, (last_s - first_s) or 1.0)
    write_scale(axes, "x", "time since the first start", format_seconds)
    name_rows(axes, names)
    write_key(figure, list(COLOURS.items()), left, height - 0.75)
    return figure
