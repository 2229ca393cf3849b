"""Colours, the same in all pictures: fabrics, parts of a time, wavelengths, ink and paper.

Fabrics have the palette of Okabe and Ito, parts of a time the bright one of Tol; both are distinguishable without red and
green. The colours of ink and paper are placeholders: a page replaces them by those of its light or dark theme.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

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
_FABRICS = {
    "ramp": "#0072b2", "sipac": "#009e73", "terarack": "#cc79a7", "oddl": "#d55e00", "lightpath": "#56b4e9",
    "bcube": "#a6761d", "dragonfly": "#999933", "fat_tree": "#4d4d4d", "ideal": "#7f7f7f", "leaf_spine": "#b3b3b3",
    "ocs": "#e69f00", "sip_ring": "#44aa99", "superpod": "#332288", "terarack_torus": "#ddcc77", "topoopt": "#aa4499",
    "torus": "#882255",
}  # fmt: skip
_SPARE = ("#117733", "#6699cc", "#661100", "#88ccaa", "#997700", "#ee99aa")
"""Of fabrics that are not part of the package."""

_SHADES = (0.0, -0.45, 0.45, -0.65, 0.65, -0.25, 0.25)
"""Share of white, or of black where it is negative, in the colour of the first, second, ... fabric of one name."""


def fabric_colours(names: Iterable[str]) -> dict[str, str]:
    """Colour of each fabric, the same whatever is beside it; fabrics of one name with other parameters are its shades.

    >>> fabric_colours(["ramp", "ramp:x=2"])
    {'ramp': '#0072b2', 'ramp:x=2': '#003f62'}
    """
    families: dict[str, list[str]] = {}
    for name in sorted(set(names)):
        families.setdefault(name.replace(":", " ").split()[0], []).append(name)
    colours: dict[str, str] = {}
    for family, members in families.items():
        colour = _FABRICS.get(family) or _SPARE[crc32(family.encode()) % len(_SPARE)]
        colours |= {name: _shade(colour, _SHADES[i % len(_SHADES)]) for i, name in enumerate(members)}
    return colours


def _shade(colour: str, share: float) -> str:
    """A colour with a share of white, or of black where it is negative."""
    end = 255 if share > 0 else 0
    parts = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(part + (end - part) * abs(share)):02x}" for part in parts)


def wavelength_colours(used: Sequence[int]) -> dict[int, str]:
    """Colour of each wavelength index: far apart while they are few, along one scale when they are many.

    The ends of the scale are left out: they cannot be seen on a dark or on a light page.
    """
    used = sorted(set(used))
    if len(used) <= len(_OKABE_ITO):
        return dict(zip(used, _OKABE_ITO, strict=False))
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    scale = colormaps["viridis"]
    return {w: to_hex(scale(0.22 + 0.7 * i / (len(used) - 1))) for i, w in enumerate(used)}
