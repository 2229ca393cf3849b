"""Measurements in the columns of nccl-tests, so that programs that read these read ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from opticcl.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from opticcl.execute.measure import Measurement

__all__ = ["measured_lines", "nccl_lines"]

TYPES = {"float16": "half", "float32": "float", "float64": "double"}


def measured_lines(measurements: Sequence[Measurement]) -> list[str]:
    """A line per size: time, bandwidth, and whether the result is right."""
    lines = []
    for one in measurements:
        _, bus = one.bandwidths(one.time_s)
        right = "exactly what NumPy computes" if not one.wrong else f"{one.wrong:,} elements differ from NumPy"
        lines.append(
            f"{format_bytes(one.size_bytes)} of {one.dtype} among {one.num_ranks} processes: {format_seconds(one.time_s)}, "
            f"bus bandwidth {format_rate(8 * bus)}; {right}"
        )
    return lines


def nccl_lines(measurements: Sequence[Measurement], library: str) -> list[str]:
    """Header, a line per size, and footer; the times of the MPI library follow as comments.

    Args:
        measurements: one per size.
        library: name of the MPI library.
    """
    blank = f"# {'':>10}  {'':>12}  {'':>8}  {'':>6}  {'':>6}"
    lines = [
        "#",
        f"{blank}           out-of-place                       in-place          ",
        _heading(("size", "count", "type", "redop", "root"), ("time", "algbw", "busbw", "#wrong")),
        _heading(("(B)", "(elements)", "", "", ""), ("(us)", "(GB/s)", "(GB/s)", "")),
    ]
    buses = []
    for m in measurements:
        line = f"{m.size_bytes:12d}  {m.count:12d}  {TYPES.get(m.dtype, m.dtype):>8}  {m.reduction:>6}  {m.root:>6}"
        for time_s, in_place in ((m.time_s, False), (m.in_place_s, True)):
            taken = m.time_s if time_s is None else time_s
            algorithm, bus = (value / 1e9 for value in m.bandwidths(taken))
            buses.append(bus)
            wrong = "N/A" if in_place and m.in_place_s is None else f"{m.wrong:g}"
            line += f"  {_fixed(taken * 1e6, 7)}  {_fixed(algorithm, 6)}  {_fixed(bus, 6)}  {wrong:>6}"
        lines.append(line)
    wrong_in_all = sum(m.wrong for m in measurements)
    lines.append(f"# {'Out of bounds values':<20} : {wrong_in_all} {'FAILED' if wrong_in_all else 'OK'}")
    lines.append(f"# {'Avg bus bandwidth':<20} : {sum(buses) / len(buses):g} ")
    lines.append("#")
    for m in measurements:
        if m.library_s is not None:
            algorithm, bus = (value / 1e9 for value in m.bandwidths(m.library_s))
            ratio = m.time_s / m.library_s if m.library_s else float("inf")
            lines.append(
                f"# {library}: {m.size_bytes} B in {m.library_s * 1e6:.1f} us, algbw {algorithm:.2f} GB/s, "
                f"busbw {bus:.2f} GB/s; OptiCCL takes {ratio:.2f} times as long"
            )
    return lines


def _heading(of_size: tuple[str, ...], of_time: tuple[str, ...]) -> str:
    """A line of column heads; those of the times occur twice, out of place and in place."""
    cells = [f"{head:>{width}}" for head, width in zip(of_size, (10, 12, 8, 6, 6), strict=True)]
    cells += 2 * [f"{head:>{width}}" for head, width in zip(of_time, (7, 6, 6, 6), strict=True)]
    return f"# {'  '.join(cells)} "


def _fixed(value: float, width: int) -> str:
    """A number in `width` characters, with fewer decimals the larger it is."""
    digits = len(str(int(value)))
    for decimals, most_digits in ((2, width - 3), (1, width - 2), (0, width)):
        if digits <= most_digits:
            return f"{value:{width}.{decimals}f}"
    return f"{value:{width}.1e}"
