"""Colours, the same in all pictures: fabrics, parts of a time, wavelengths, ink and paper.

Fabrics have the palette of Okabe and Ito, parts of a time the bright one of Tol; both are distinguishable without red and
green. The colours of ink and paper are placeholders: a page replaces them by those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle

from opticcl.report.kit.words import PART_NAMES

__all__ = [
    "BAND",
    "DARK",
    "FAINT",
    "INK",
    "MUTED",
    "PAPER",
    "PART_COLOURS",
    "THEME",
    "fabric_colours",
    "wavelength_colours",
]

INK, MUTED, FAINT, BAND, PAPER = "#1b2530", "#5a6876", "#d3dae1", "#eff3f6", "#fefefe"
THEME = {INK: "ink", MUTED: "muted", FAINT: "faint", BAND: "band", PAPER: "paper"}
"""Colour in a picture -> name of the page's own."""

DARK = "#101820"
"""Text on light fillings, whatever the page."""

PART_COLOURS: dict[str, str] = dict(
    zip(PART_NAMES.values(), ("#ee6677", "#ccbb44", "#4477aa", "#228833", "#aa3377"), strict=True)
)

_OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_OPTICAL = dict(zip(("ramp", "sipac", "terarack", "oddl", "lightpath"), _OKABE_ITO[:1] + _OKABE_ITO[2:], strict=False))
_RIVALS = (
    "#7f7f7f", "#a6761d", "#4d4d4d", "#999933", "#882255", "#44aa99", "#332288", "#aa4499", "#ddcc77", "#b3b3b3",
)  # fmt: skip


def fabric_colours(names: Iterable[str]) -> dict[str, str]:
    """Colour of each fabric: a fixed one for the optical systems, those of rivals in the order of their names."""
    rivals = cycle(_RIVALS)
    return {name: _OPTICAL.get(name) or next(rivals) for name in sorted(set(names))}


def wavelength_colours(used: Sequence[int]) -> dict[int, str]:
    """Colour of each wavelength index: far apart while they are few, along one scale when they are many."""
    used = sorted(set(used))
    if len(used) <= len(_OKABE_ITO):
        return dict(zip(used, _OKABE_ITO, strict=False))
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["viridis"]
    return {w: to_hex(scale(0.92 * i / (len(used) - 1))) for i, w in enumerate(used)}
