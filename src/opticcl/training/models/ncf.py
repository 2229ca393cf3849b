"""Neural collaborative filtering."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import check_positive, linear

_SIZES = read_toml("opticcl.training.models", "ncf.toml")


@MODELS.register("ncf")
def ncf(*, users: int = _SIZES["users"], items: int = _SIZES["items"], factors: int = _SIZES["factors"]) -> Model:
    """Neural collaborative filtering.

    Matrix factorisation and fully connected layers side by side; the gradients of all rows are dense.

    Args:
        users, items: rows of the embeddings.
        factors: columns of the embeddings of the factorisation.
    Raises: ParameterError: less than 1.
    Source: He et al. 2017; MLPerf training 0.5.
    """
    check_positive("ncf", users=users, items=items, factors=factors)
    layers = tuple(_layers(users, items, factors))
    return Model("ncf", _SIZES["source"], "a user and an item", layers)


def _layers(users: int, items: int, factors: int) -> Iterator[Layer]:
    hidden: list[int] = _SIZES["hidden"]
    half = hidden[0] // 2
    for name, rows, columns in (
        ("users.factors", users, factors),
        ("items.factors", items, factors),
        ("users.layers", users, half),
        ("items.layers", items, half),
    ):
        yield Layer(name, "embedding", (rows * columns,), 0, columns, columns)
    for number, (inputs, outputs) in enumerate(pairwise(hidden), 1):
        yield linear(f"fc{number}", inputs, outputs)
    yield linear("output", hidden[-1] + factors, 1)
