"""VGG with 16 and 19 layers."""

from __future__ import annotations

from typing import Any

from opticcl.files import read_toml
from opticcl.training.model import Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import stack


@MODELS.register("vgg16")
def vgg16() -> Model:
    """VGG-16, configuration D.

    Source: Simonyan and Zisserman 2015, table 1.
    """
    return _vgg("vgg16")


@MODELS.register("vgg19")
def vgg19() -> Model:
    """VGG-19, configuration E.

    Source: Simonyan and Zisserman 2015, table 1.
    """
    return _vgg("vgg19")


def _vgg(name: str) -> Model:
    table = read_toml("opticcl.training.models", "vgg.toml")
    rows: list[dict[str, Any]] = []
    for channels, count in zip(table["channels"], table[name]["convolutions"], strict=True):
        rows += [{"conv": channels, "kernel": 3, "padding": 1}] * count + [{"pool": 2, "stride": 2}]
    rows += [{"linear": table["hidden"]}] * 2 + [{"linear": table["classes"]}]
    return Model(name, table["source"], "image of 224x224x3", stack(rows, tuple(table["input"])))
