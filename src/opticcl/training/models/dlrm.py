"""DLRM: embedding tables, two stacks of fully connected layers and what joins them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal

from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import check_positive, linear


@MODELS.register("dlrm")
def dlrm(
    *,
    preset: Literal["open", "topoopt", "ramp_256", "ramp_1024", "ramp_4096", "ramp_16384", "ramp_65536"] = "open",
    tables: int | None = None,
    rows: int | None = None,
    features: int | None = None,
    lookups: int | None = None,
) -> Model:
    """Deep learning recommendation model.

    Args:
        preset: whose sizes: open (Naumov et al.), topoopt, or ramp_N, the row of RAMP's table 10 with N devices.
        tables: embedding tables; None here and below: as in the preset.
        rows: of each table.
        features: columns of each table.
        lookups: rows that a sample looks up in each table and adds.
    Raises: ParameterError: less than 1.
    Source: Naumov et al. 2019.
    """
    given = {"tables": tables, "rows": rows, "features": features, "lookups": lookups}
    sizes = read_toml("opticcl.training.models", "dlrm.toml")[preset] | {
        name: value for name, value in given.items() if value is not None
    }
    check_positive("dlrm", **{name: sizes[name] for name in given})
    if sizes["interaction"] == "dot":  # multiplies the bottom's output with rows, so it is as long as they are
        sizes["bottom"] = [*sizes["bottom"][:-1], sizes["features"]]
    half = 2 if preset.startswith("ramp") else 4
    return Model("dlrm", sizes["source"], "a click", tuple(_layers(sizes)), half)


def _layers(sizes: dict[str, Any]) -> Iterator[Layer]:
    tables, features = sizes["tables"], sizes["features"]
    for number in range(1, tables + 1):
        yield Layer(
            f"table{number}",
            "table",
            (sizes["rows"] * features,),
            macs=sizes["lookups"] * features,
            outputs=features,
            activations=features,
            split=(True,),
            ways=features,
            exchanged=features,
        )
    for number, (inputs, outputs) in enumerate(pairwise([sizes["dense"], *sizes["bottom"]]), 1):
        yield linear(f"bottom{number}", inputs, outputs)
    last = sizes["bottom"][-1]
    pairs = tables * (tables + 1) // 2
    dot = sizes["interaction"] == "dot"
    width = last + pairs if dot else last + tables * features
    yield Layer("interaction", "interaction", (), pairs * features if dot else 0, width, width)
    for number, (inputs, outputs) in enumerate(pairwise([width, *sizes["top"]]), 1):
        yield linear(f"top{number}", inputs, outputs)
