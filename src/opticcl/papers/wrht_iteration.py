"""WRHT's figures 5 and 6 point by point: which of the four models' gradients is slowest where (section 5.4, 5.5)."""

from __future__ import annotations

from opticcl.fabrics import fabric
from opticcl.papers import Found, claim, found
from opticcl.papers.wrht import FIGURE_5, FIGURE_6, FITTED, H_RING, LITERAL, _times
from opticcl.schedule import generate

MODELS = ("BEiT", "VGG16", "AlexNet", "ResNet50")


@claim("wrht", "W25", *FITTED)
@claim("wrht", "W25l", *LITERAL)
def slower_than_rings(rate: str, algorithm: str) -> list[str]:
    """Models for which WRHT takes longer than Ring and than H-Ring with the fewest wavelengths of figure 5."""
    shape = f"{FIGURE_5[0]},{rate}"
    ours, ring, h_ring = (_times(shape, a) for a in (algorithm, "ring", H_RING))
    return [name for name, *t in zip(MODELS, ours, ring, h_ring, strict=True) if t[0] > max(t[1:])]


@claim("wrht", "W31", FITTED[1])
@claim("wrht", "W31l", LITERAL[1])
def steps_of_figure_6(algorithm: str) -> Found:
    """Steps that the averages need, or of the algorithm as it is described."""
    steps = [generate(algorithm, "all_reduce", fabric(f"terarack:{shape}")).num_steps for shape in FIGURE_6]
    return found(steps, rise=100 * (steps[2] / steps[0] - 1))


@claim("wrht", "W32l", *LITERAL)
def trees_worst(rate: str, algorithm: str) -> list[str]:
    """Models for which BT takes longest at every number of nodes."""
    worst = dict.fromkeys(MODELS, True)
    for shape in FIGURE_6:
        times = [_times(f"{shape},{rate}", a) for a in ("tree", algorithm, "ring", H_RING)]
        for name, tree, *others in zip(MODELS, *times, strict=True):
            worst[name] = worst[name] and tree > max(others)
    return [name for name, always in worst.items() if always]


@claim("wrht", "W32")
def tree_is_worst() -> Found:
    """Fitted."""
    most = {name: _largest_rate(i) for i, name in enumerate(MODELS)}
    low, high = max(most["AlexNet"], most["ResNet50"]), min(most["BEiT"], most["VGG16"])
    return found(trees_worst(*FITTED), low=low, high=high)


def _largest_rate(which: int) -> float:
    """Rate of a wavelength up to which BT takes longest at every number of nodes, for one model [Gb/s].

    A time is a + b / rate, so that two rates give both. Rivals with a smaller a than BT's set no limit.
    """
    least = float("inf")
    for shape in FIGURE_6:
        lines = []
        for algorithm in ("tree", FITTED[1], "ring", H_RING):
            slow, fast = (_times(f"{shape},{rate}", algorithm)[which] for rate in (LITERAL[0], FITTED[0]))
            b = (slow - fast) / (1 / 40 - 1 / 320)
            lines.append((slow - b / 40, b))
        (a, b), *rivals = lines
        least = min([least, *((b - other_b) / (other_a - a) for other_a, other_b in rivals if other_a > a)])
    return least
