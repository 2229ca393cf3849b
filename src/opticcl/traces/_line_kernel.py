"""The compiled scan of `line_scan`."""

from __future__ import annotations

from opticcl.kernels import njit

_DIGITS = 18  # of a number: below 2**60
_EXACT = 15  # digits of a decimal number whose value is the correctly rounded quotient of two exact ones


@njit
def _number(data, at, stop):  # type: ignore[no-untyped-def]
    """A whole number of at most 18 digits from `at`, and where it ends; -1 if there is none."""
    value, first = 0, at
    while at < stop and at - first < _DIGITS and 48 <= data[at] <= 57:
        value = 10 * value + int(data[at]) - 48
        at += 1
    return (value if at > first else -1), at


@njit
def _decimal(data, at, stop):  # type: ignore[no-untyped-def]
    """The number of digits with or without a fraction from `at` to `stop`; -1 if that is something else."""
    mantissa, digits, after, point = 0, 0, 0, False
    while at < stop:
        if 48 <= data[at] <= 57:
            mantissa = 10 * mantissa + int(data[at]) - 48
            digits += 1
            after += point
        elif data[at] == 46 and not point and digits:
            point = True
        else:
            return -1.0
        at += 1
    if not 0 < digits <= _EXACT or (point and not after):
        return -1.0
    return mantissa / 10.0**after


@njit
def scan(data, tagged, separator, start, end, text_start, text_end, matched, numbers, took_ms):  # type: ignore[no-untyped-def]
    """What is in each line.

    Args:
        data: the lines [bytes].
        tagged, separator: see `line_scan.line_blocks`; the separator as a byte.
        start, end: of each line.
        text_start, text_end, found, numbers, took_ms: are filled, see `line_scan.Lines`.
    """
    count = numbers.shape[1]
    for line in range(len(start)):
        at, stop = start[line], end[line]
        if stop > at and data[stop - 1] == 13:  # a carriage return
            stop -= 1
        text = False
        if tagged:
            if stop - at > 4 and data[at] == 76 and data[at + 1] == 50 and data[at + 2] == 76 and data[at + 3] == 59:
                at += 4  # L2L;
            elif stop - at > 3 and data[at] == 65 and data[at + 1] == 82 and data[at + 2] == 59:
                at, text = at + 3, True  # AR;
            else:
                continue
        good = True
        for i in range(1 if text else count):
            numbers[line, i], after = _number(data, at, stop)
            # A number with leading zeros is a text in some columns.
            if numbers[line, i] < 0 or (data[at] == 48 and after - at > 1):
                good = False
                break
            at = after
            if i + 1 < count:  # also behind the number of a text
                if at == stop or data[at] != separator:
                    good = False
                    break
                at += 1
        if not good:
            continue
        bar = at
        if text:
            while bar < stop and data[bar] != 124:
                bar += 1
        if bar < stop:
            if not tagged or data[bar] != 124:
                continue
            took_ms[line] = _decimal(data, bar + 1, stop)
            if took_ms[line] < 0:
                continue
        text_start[line], text_end[line] = at, bar
        matched[line] = 2 if text else 1
