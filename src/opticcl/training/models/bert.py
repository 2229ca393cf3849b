"""BERT, base and large."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import attention, embedding, feed_forward, linear


@MODELS.register("bert")
def bert(*, size: Literal["base", "large"] = "large", sequence: int = 512, heads: bool = True) -> Model:
    """BERT in pre-training.

    Args:
        size: base or large.
        sequence: tokens of a sample, at most 512.
        heads: with the layers that predict words and the next sentence: 110,106,428 and 336,226,108 parameters; without
            109,482,240 and 335,141,888.
    Raises: ParameterError: a sequence that is too long.
    Source: Devlin et al. 2019.
    """
    table = read_toml("opticcl.training.models", "bert.toml")
    if not 1 <= sequence <= table["positions"]:
        raise ParameterError(f"bert: sequence={sequence} is not 1 to {table['positions']}")
    layers = tuple(_layers({**table, **table[size]}, sequence, heads))
    return Model("bert", table["source"], f"sequence of {sequence} tokens", layers)


def _layers(table: dict[str, Any], sequence: int, heads: bool) -> Iterator[Layer]:
    hidden, vocabulary = table["hidden"], table["vocabulary"]
    whole = (table["positions"] * hidden, table["types"] * hidden, hidden, hidden)
    yield embedding("embedding", vocabulary, hidden, sequence, whole)
    for number in range(1, table["layers"] + 1):
        yield attention(f"block{number}.attention", hidden, table["heads"], sequence, fused=False)
        yield feed_forward(f"block{number}.feed_forward", hidden, 4 * hidden, sequence)
    yield linear("pooler", hidden, hidden)
    if heads:
        norm = linear("words.transform", hidden, hidden, rows=sequence)
        yield Layer(norm.name, norm.kind, (*norm.tensors, hidden, hidden), norm.macs, norm.outputs, 2 * norm.outputs)
        yield Layer(
            "words",
            "output",
            (vocabulary,),  # its matrix is the embedding's
            macs=sequence * hidden * vocabulary,
            outputs=sequence * vocabulary,
            activations=sequence * (hidden + vocabulary),
            split=(True,),
            ways=vocabulary,
        )
        yield linear("next_sentence", hidden, 2)
