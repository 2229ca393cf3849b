"""Quantities: text with a unit in, SI floats inside, short text out.

Decimal prefixes are powers of ten (1 MB = 1e6 bytes), binary prefixes powers of two (1 MiB = 2**20 bytes). A number without
a unit is in the SI unit of its dimension. A text is refused where it probably means something else: a comma that separates
no thousands, milli-bytes, a rate of 800 without a unit. The annotation of a parameter gives its dimension:

    def terarack(*, nodes: int = 1024, wavelength_rate: Rate = 40e9): ...

>>> quantity("100 MB", "bytes")
100000000.0
>>> quantity("2.4 Tb/s", "bit/s"), quantity("300 GB/s", "bit/s")
(2400000000000.0, 2400000000000.0)
>>> quantity("3.7 us", "s")
3.7e-06
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from html import escape
from numbers import Integral, Real
from typing import Annotated, Any

from opticcl.errors import UnitError

__all__ = [
    "ByteRate",
    "Bytes",
    "Rate",
    "Seconds",
    "Shape",
    "WholeBytes",
    "counted",
    "format_bytes",
    "format_quantity",
    "format_rate",
    "format_seconds",
    "format_share",
    "format_value",
    "html_table",
    "in_columns",
    "message_size",
    "number_of",
    "part_of",
    "quantity",
    "shape",
    "toml_number",
    "unit_suffix",
    "whole_of",
]

Bytes = Annotated[float, "bytes"]
WholeBytes = Annotated[int, "bytes"]
Rate = Annotated[float, "bit/s"]
ByteRate = Annotated[float, "byte/s"]
Seconds = Annotated[float, "s"]
Shape = Annotated[tuple[int, ...], "shape"]

_UNITS: dict[str, dict[str, float]] = {
    "bytes": {"B": 1, "byte": 1, "bytes": 1},
    "bit/s": {"b/s": 1, "bps": 1, "bit/s": 1, "bits/s": 1, "B/s": 8, "byte/s": 8, "bytes/s": 8, "Bps": 8},
    "byte/s": {"B/s": 1, "byte/s": 1, "bytes/s": 1, "Bps": 1, "b/s": 1 / 8, "bps": 1 / 8, "bit/s": 1 / 8},
    "s": {"s": 1, "sec": 1},
    "s/m": {"s/m": 1},
    "Hz": {"Hz": 1},
    "dB": {"dB": 1},
}
_EXAMPLES = {
    "bytes": "100MB",
    "bit/s": "400Gb/s",
    "byte/s": "1.5TB/s",
    "s": "3.7us",
    "s/m": "4.9ns/m",
    "Hz": "1GHz",
    "dB": "0.25dB",
}
_NAMES = {
    "bytes": "size in bytes",
    "bit/s": "rate",
    "byte/s": "rate in bytes",
    "s": "time",
    "s/m": "time a metre",
    "Hz": "frequency",
    "dB": "ratio in decibels",
}
_LARGE_PREFIXES = ("", "k", "K", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALL_PREFIXES = ("m", "u", "n", "p", "f", "a", "µ", "μ", "c", "d", "z", "y")
_WHOLE_UNITS = ("bytes", "bit/s", "byte/s")  # of which a thousandth makes no sense
_LEAST_RATE = 1e6  # of a text without a unit [bit/s or byte/s]
_NUMBER = re.compile(r"\s*[+-]?([0-9][0-9.,_]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)
_THOUSANDS = re.compile(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")

MAX_MESSAGE_BYTES = 2.0**60


def whole_of(text: str) -> int:
    """The whole number that a text writes in the digits 0 to 9, with or without a sign.

    >>> whole_of("12"), whole_of(" -3 ")
    (12, -3)

    Raises: ValueError: it writes none; the text says why, as "is not ...".
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,400}", text.strip()):
        raise ValueError("is not a whole number")
    return int(text)


def number_of(text: str) -> float:
    """The number that a text writes in the digits 0 to 9; one that is too large, "inf" and "nan" are not finite.

    >>> number_of("1.5e-3"), number_of("1e999")
    (0.0015, inf)

    Raises: ValueError: it writes none, or one that would be computed with as 0; the text says why, as "is not ...".
    """
    written = text.strip()
    if not _DECIMAL.fullmatch(written) and not _NOT_FINITE.fullmatch(written):
        raise ValueError("is not a number")
    value = float(written)
    if _vanishes(value, written):
        raise ValueError("is too small to compute with; write 0 or at least 1e-300")
    return value


def toml_number(text: str) -> float:
    """The number of a TOML file, whose digits may be apart: `parse_float` of `tomllib.loads`.

    Raises: ValueError: one that would be computed with as 0.
    """
    try:
        return number_of(text.replace("_", ""))
    except ValueError as error:
        raise ValueError(f"{text} {error}") from None


def _vanishes(value: float, text: str) -> bool:
    """Whether a number is 0 of which a text says that it is not."""
    return value == 0 and bool(re.search("[1-9]", re.split("[eE]", text, maxsplit=1)[0]))


def quantity(text: str | float, unit: str, what: str = "value", *, bare: bool = True) -> float:
    """A number in SI units from a text or a number.

    Args:
        text: "100 MB", "2.4Tb/s", 3.7e-6; a number, of Python or NumPy, is in `unit`.
        unit: "bytes", "bit/s", "byte/s", "s", "s/m", "Hz" or "dB".
        what: name of the field, for the message.
        bare: whether a text may leave the unit out; a rate below 1e6 never may.
    Raises: UnitError: not a number, a unit of another dimension, or a text that probably means something else.
    """
    if isinstance(text, bool) or not isinstance(text, str):
        if isinstance(text, bool) or not isinstance(text, Real):
            raise UnitError(f"{what}: {text!r} is not a {_NAMES[unit]}; try {_EXAMPLES[unit]}")
        value = float(text)
    else:
        value = _parse(text, unit, what, bare)
        if _vanishes(value, text):
            raise UnitError(f"{what}: {text!r} is too small to compute with; write 0 or at least 1e-300")
    if not math.isfinite(value):
        raise UnitError(f"{what}: {text!r} is not finite; try {_EXAMPLES[unit]}")
    return value


def _parse(text: str, unit: str, what: str, bare: bool) -> float:
    from quantiphy import QuantiPhyError, Quantity

    _check_commas(text, what)
    try:
        parsed = Quantity(text.strip(), binary=True)
    except (QuantiPhyError, ValueError):
        raise UnitError(f"{what}: {text!r} is not a {_NAMES[unit]}; try {_EXAMPLES[unit]}") from None
    if not parsed.units:
        if any(c.isalpha() and c not in "eE" for c in text):  # a prefix alone, "5k"
            prefixed = _split(text)[1] in (*_LARGE_PREFIXES, *_SMALL_PREFIXES)
            example = f"{text.strip()}{next(iter(_UNITS[unit]))}" if prefixed else _EXAMPLES[unit]
            raise UnitError(f"{what}: {text!r} has no unit; try {example}")
        _check_bare(text, float(parsed), unit, what, bare)
        return float(parsed)
    factor = _UNITS[unit].get(parsed.units)
    number, written = _split(text)
    small = unit in _WHOLE_UNITS and written.removesuffix(parsed.units) in _SMALL_PREFIXES
    if factor is None or small:
        meant = _meant(written, unit)
        known = bool(meant) and Quantity(number + meant, binary=True).units in _UNITS[unit]
        hint = f"did you mean {number}{meant}?" if known else f"try {_EXAMPLES[unit]}"
        raise UnitError(f"{what}: {text!r} is not a {_NAMES[unit]}; {hint}")
    return float(parsed) * factor


def _check_commas(text: str, what: str) -> None:
    """Refuse "1,5GB", which would be read as 15 GB, and "1_500MB"; "1,500MB" is 1500 MB."""
    match = _NUMBER.match(text)
    if match is not None and "_" in match[0]:
        raise UnitError(f"{what}: {text!r} has an underscore in its number; write {text.strip().replace('_', '')}")
    if match is None or "," not in match[1] or _THOUSANDS.fullmatch(match[1]):
        return
    digits = match[1].replace(".", "")
    point = digits.replace(",", ".") if digits.count(",") == 1 else digits.replace(",", "")
    meant = (text[: match.start(1)] + point + text[match.end(1) :]).strip()
    raise UnitError(f"{what}: {text!r} has a comma that separates no thousands; did you mean {meant}?")


def _check_bare(text: str, value: float, unit: str, what: str, bare: bool) -> None:
    """Refuse a number without a unit where it probably means another one, or where a unit is required."""
    tiny = unit in ("bit/s", "byte/s") and 0 < abs(value) < _LEAST_RATE
    if bare and not tiny:
        return
    if not value:
        raise UnitError(f"{what}: {text!r} has no unit; try {_EXAMPLES[unit]}")
    meant = f"{text.strip()}{'G' if tiny else ''}{next(iter(_UNITS[unit]))}"
    raise UnitError(f"{what}: {text!r} has no unit; did you mean {meant}?")


def _split(text: str) -> tuple[str, str]:
    """Number and unit of a quantity, as they are written.

    >>> _split("800 mb/s")
    ('800', 'mb/s')
    """
    match = _NUMBER.match(text)
    end = 0 if match is None else match.end()
    return text[:end].strip(), text[end:].strip()


def _meant(written: str, unit: str) -> str:
    """The unit that differs from the written one in upper and lower case alone, or "".

    >>> _meant("mb/s", "bit/s"), _meant("gb", "bytes"), _meant("m", "s")
    ('Mb/s', 'GB', '')
    """
    prefixes = _LARGE_PREFIXES if unit in _WHOLE_UNITS else (*_LARGE_PREFIXES, *_SMALL_PREFIXES)
    known = (prefix + name for prefix in prefixes for name in _UNITS[unit])
    found = [one for one in known if one.casefold() == written.casefold() and one != written]
    return min(found, key=lambda one: sum(a != b for a, b in zip(one, written, strict=True)), default="")


def message_size(text: str | float, what: str = "size") -> int:
    """A size in whole bytes, 0 to 2**60.

    >>> message_size("1 KiB"), message_size("100MB"), message_size(0)
    (1024, 100000000, 0)

    Args:
        text: "100 MB", or a number of bytes.
        what: name of the field, for the message.
    Raises: UnitError: no size, negative, a fraction of a byte or more than 2**60 bytes.
    """
    if isinstance(text, Integral) and abs(text) > MAX_MESSAGE_BYTES:  # some are too large for a float
        value = math.inf if text > 0 else -math.inf
    else:
        value = quantity(text, "bytes", what)
    if value < 0:
        raise UnitError(f"{what}: {text!r} is negative; a message has 0 bytes or more")
    if value > MAX_MESSAGE_BYTES:
        raise UnitError(f"{what}: {text!r} is more than 2**60 bytes; check the prefix")
    if value != round(value):
        raise UnitError(f"{what}: {text!r} is not a whole number of bytes; try {round(value)}B")
    return round(value)


def shape(text: Any, what: str = "shape") -> tuple[int, ...]:
    """Sides of a grid: "32x32", 64, (8, 8, 16) or an array of such numbers.

    >>> shape("16x16"), shape("64")
    ((16, 16), (64,))

    Raises: UnitError: not whole numbers of at least 1.
    """
    if isinstance(text, str):
        try:
            sides: tuple[Any, ...] = tuple(map(whole_of, text.lower().split("x")))
        except ValueError:
            sides = ()
    else:
        sides = tuple(text) if isinstance(text, Iterable) else (text,)
    if not sides or any(isinstance(s, bool) or not isinstance(s, Integral) or s < 1 for s in sides):
        raise UnitError(
            f"{what}: {text!r} is not a shape; write whole numbers of at least 1 joined by x, such as 16x16"
        )
    return tuple(map(int, sides))


def _engineering(value: float, unit: str, digits: int = 4) -> str:
    if value == 0:
        return f"0 {unit}"
    exponent = min(max(math.floor(math.log10(abs(value)) / 3) * 3, -15), 18)
    prefix = {-15: "f", -12: "p", -9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
    scaled = f"{value / 10.0**exponent:.{digits}g}"
    if float(scaled) >= 1000 and exponent < 18:  # 999.96 rounds up into the next prefix
        return _engineering(10.0 ** (exponent + 3), unit, digits)
    return f"{scaled} {prefix[exponent]}{unit}"


def format_seconds(value: float) -> str:
    """Time with four digits: "1.336 ms"; from one second on without a prefix.

    >>> format_seconds(0.00133625), format_seconds(90)
    ('1.336 ms', '90 s')
    """
    return f"{value:.4g} s" if value >= 1 else _engineering(value, "s")


def format_share(share: float) -> str:
    """A share in a sentence.

    >>> format_share(0.0457), format_share(1e-5)
    ('4.6 %', 'below 0.1 %')
    """
    return "below 0.1 %" if 0 < share < 5e-4 else f"{100 * share:.1f} %"


def part_of(seconds: float, whole_s: float) -> str:
    """A time as a part of another.

    >>> part_of(10.16e-3, 222.4e-3), part_of(50e-6, 21.1e-3)
    ('10.16 of 222.4 ms (4.6 %)', '50 us of 21.1 ms (0.2 %)')

    Args: seconds, whole_s: both times [s].
    """
    part, whole = format_seconds(seconds), format_seconds(whole_s)
    if part.rpartition(" ")[2] == whole.rpartition(" ")[2]:
        part = part.rpartition(" ")[0]
    return f"{part} of {whole}" + (f" ({format_share(seconds / whole_s)})" if whole_s else "")


def format_bytes(value: float) -> str:
    """Size with decimal prefixes: "102.2 MB"."""
    return _engineering(value, "B").replace("kB", "KB")


def format_quantity(value: object, unit: str) -> str:
    """The value of a parameter with its unit.

    >>> format_quantity(400e9, "bit/s"), format_quantity((16, 16), "shape"), format_quantity(2e-8, "s")
    ('400 Gb/s', '16x16', '20 ns')

    Args: unit: of the annotation: "bytes", "bit/s", "byte/s", "s", "dB", "shape", or "" for none.
    """
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not unit:
        return str(value)
    names = {"bytes": "B", "bit/s": "b/s", "byte/s": "B/s"}
    return f"{value:g} dB" if unit == "dB" else _engineering(value, names.get(unit, unit))


def counted(count: int, thing: str) -> str:
    """A count with its noun, in the plural where needed.

    >>> counted(1, "step"), counted(2, "step")
    ('1 step', '2 steps')
    """
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def format_rate(value: float) -> str:
    """Rate in bits: "12.8 Tb/s"."""
    return _engineering(value, "b/s").replace("kb/s", "Kb/s")


def in_columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts as lines with aligned columns.

    >>> print(in_columns([("fabric", "time"), ("oddl", "1 ms")]))
    fabric  time
    oddl    1 ms
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """Rows of texts as a table for a notebook.

    >>> html_table(["fabric"], [["oddl"]], ["one <plan>"])
    '<table><thead><tr><th>fabric</th></tr></thead><tbody><tr><td>oddl</td></tr></tbody></table><p>one &lt;plan&gt;</p>'

    Args:
        head: names of the columns.
        rows: cells of each row.
        notes: lines below the table.
    """
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{below}"


_FORMATS: dict[str, Callable[[float], str]] = {
    "_bits_per_s": format_rate,
    "_bytes_per_s": lambda value: format_quantity(float(value), "byte/s"),
    "_bytes": format_bytes,
    "_s": format_seconds,
    "_db": lambda value: f"{value:.2f} dB",
    "_w": lambda value: format_quantity(float(value), "W"),
    "_usd": lambda value: f"{value:,.4g} $",
}
"""Ending of a column name -> text of a value; the first that matches counts."""


def unit_suffix(name: str) -> str:
    """Unit at the end of a column name, "" if it has none.

    >>> unit_suffix("total_s"), unit_suffix("node_rate_bits_per_s"), unit_suffix("num_nodes")
    ('_s', '_bits_per_s', '')
    """
    return next((suffix for suffix in _FORMATS if name.endswith(suffix)), "")


def format_value(name: str, value: Any) -> str:
    """Text of a value with the unit of its column.

    >>> format_value("total_s", 0.00123), format_value("num_nodes", 65536), format_value("verified", False)
    ('1.23 ms', '65,536', 'NO')

    Args:
        name: of the column.
        value: a plain value.
    """
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, str):
        return value
    if suffix := unit_suffix(name):
        return _FORMATS[suffix](value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)
