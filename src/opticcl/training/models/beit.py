"""BEiT-L, a vision transformer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import attention, feed_forward, linear


@MODELS.register("beit_l")
def beit_l() -> Model:
    """BEiT-L, a vision transformer.

    With patches of 16x16 and a classifier of 1000 classes.

    Source: Bao et al. 2022.
    Reading: its paper and WRHT give 307M, the rounded size of ViT-L; the fine-tuned network has 304,430,568.
    """
    table = read_toml("opticcl.training.models", "beit_l.toml")
    return Model("beit_l", table["source"], "image of 224x224x3", tuple(_layers(table)))


def _layers(table: dict[str, Any]) -> Iterator[Layer]:
    hidden, side = table["hidden"], table["image"] // table["patch"]
    patches, pixels = side * side, 3 * table["patch"] ** 2
    sequence = patches + 1  # and the class token
    distances = (2 * side - 1) ** 2 + 3  # relative positions, and those to and from the class token
    yield Layer(
        "patches",
        "conv",
        (pixels * hidden, hidden, hidden),  # the third is the class token
        macs=patches * pixels * hidden,
        outputs=sequence * hidden,
        activations=sequence * hidden,
    )
    for number in range(1, table["layers"] + 1):
        # Keys have no bias; each half of a block has a scale, the first also a table of relative positions.
        yield attention(
            f"block{number}.attention",
            hidden,
            table["heads"],
            sequence,
            biases=(hidden, hidden),
            extra=(hidden, distances * table["heads"]),
        )
        yield feed_forward(f"block{number}.feed_forward", hidden, table["feed_forward"], sequence, extra=(hidden,))
    yield Layer("norm", "norm", (hidden, hidden), 0, hidden, hidden)
    yield linear("classifier", hidden, table["classes"])
