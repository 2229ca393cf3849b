"""Inception-v3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import Image, conv, linear, pooled


@MODELS.register("inception_v3")
def inception_v3(*, auxiliary: bool = True) -> Model:
    """Inception-v3.

    Args: auxiliary: with the second classifier that only training has: 27,161,264 parameters; without 23,834,568.
    Source: Szegedy et al. 2016; shapes of the blocks as torchvision has them.
    """
    table = read_toml("opticcl.training.models", "inception_v3.toml")
    return Model("inception_v3", table["source"], "image of 299x299x3", tuple(_layers(table, auxiliary)))


def _layers(table: Mapping[str, Any], auxiliary: bool) -> Iterator[Layer]:
    image: Image = tuple(table["input"])
    layers, image = _branch("stem", table["stem"], image)
    yield from layers
    for number, kind in enumerate(table["order"], 1):
        if auxiliary and number == table["auxiliary"]["after"] + 1:
            layers, small = _branch("auxiliary", table["auxiliary"]["layers"], image)
            yield from layers
            yield linear("auxiliary.fc", small[0] * small[1] * small[2], table["classes"])
        channels, after = 0, image
        for branch, rows in enumerate(table["blocks"][kind], 1):
            layers, after = _branch(f"block{number}.{branch}", rows, image)
            channels += after[0]
            yield from layers
        image = (channels, after[1], after[2])
    yield linear("fc", image[0], table["classes"])


def _branch(name: str, rows: Sequence[Mapping[str, Any]], image: Image) -> tuple[list[Layer], Image]:
    """Layers of one branch, and the image after it."""
    layers: list[Layer] = []
    for row in rows:
        if "pool" in row:
            image = pooled(image, row["pool"], row["stride"], row.get("padding"))
        elif "fork" in row:
            ends = [_convolution(f"{name}.{len(layers) + i}", image, end) for i, end in enumerate(row["fork"], 1)]
            layers += [layer for layer, _ in ends]
            image = (sum(after[0] for _, after in ends), *ends[0][1][1:])
        else:
            layer, image = _convolution(f"{name}.{len(layers) + 1}", image, row)
            layers.append(layer)
    return layers, image


def _convolution(name: str, image: Image, row: Mapping[str, Any]) -> tuple[Layer, Image]:
    size, padding = row.get("stride", 1), row.get("padding")
    return conv(name, image, row["conv"], row["kernel"], stride=size, padding=padding, norm=True)
