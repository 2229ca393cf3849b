"""ResNet with 50 layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import Image, conv, linear, pooled


@MODELS.register("resnet50")
def resnet50(*, stride: Literal["3x3", "1x1"] = "3x3") -> Model:
    """ResNet-50.

    Args: stride: the convolution of a block that halves the image: 3x3 as frameworks have it (4.09e9 multiply-accumulates),
        1x1 as printed (3.86e9).
    Source: He et al. 2016, table 1.
    """
    table = read_toml("opticcl.training.models", "resnet50.toml")
    return Model("resnet50", table["source"], "image of 224x224x3", tuple(_layers(stride == "3x3")))


def _layers(stride_in_3x3: bool) -> Iterator[Layer]:
    table = read_toml("opticcl.training.models", "resnet50.toml")
    stem, pool, expansion = table["stem"], table["pool"], table["expansion"]
    image: Image = tuple(table["input"])
    layer, image = conv(
        "conv1", image, stem["conv"], stem["kernel"], stride=stem["stride"], padding=stem["padding"], norm=True
    )
    yield layer
    image = pooled(image, pool["pool"], pool["stride"], pool["padding"])
    for stage, (width, blocks) in enumerate(zip(table["widths"], table["blocks"], strict=True), 1):
        for block in range(blocks):
            name, stride = f"stage{stage}.block{block + 1}", 2 if stage > 1 and block == 0 else 1
            first, third = (1, stride) if stride_in_3x3 else (stride, 1)
            reduce, inside = conv(f"{name}.conv1", image, width, 1, stride=first, norm=True)
            spread, inside = conv(f"{name}.conv2", inside, width, 3, stride=third, norm=True)
            expand, after = conv(f"{name}.conv3", inside, width * expansion, 1, norm=True)
            yield from (reduce, spread, expand)
            if block == 0:
                yield conv(f"{name}.shortcut", image, width * expansion, 1, stride=stride, norm=True)[0]
            image = after
    yield linear("fc", image[0], table["classes"])
