"""Transformers of any size: decoder-only like GPT, or just the blocks."""

from __future__ import annotations

from collections.abc import Iterator

from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import attention, check_heads, check_positive, embedding, feed_forward


@MODELS.register("transformer")
def transformer(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    sequence: int = 1024,
    vocabulary: int = 50257,
    feed_forward_width: int | None = None,
) -> Model:
    """A transformer like GPT-2.

    The defaults are its small one, 124,439,808 parameters.

    Args:
        layers: blocks.
        hidden: width of a token.
        heads: of attention; divides `hidden`.
        sequence: tokens of a sample.
        vocabulary: rows of the embedding, whose transpose is the output layer; 0 leaves both out.
        feed_forward_width: None: 4 x hidden.
    Raises: ParameterError: less than 1, or heads that do not divide.
    Source: Radford et al. 2019, GPT-2; Shoeybi et al. 2019, Megatron-LM.
    """
    check_positive("transformer", layers=layers, hidden=hidden, heads=heads, sequence=sequence)
    check_heads("transformer", hidden, heads)
    width = 4 * hidden if feed_forward_width is None else feed_forward_width
    check_positive("transformer", feed_forward_width=width, vocabulary=vocabulary + 1)

    def blocks() -> Iterator[Layer]:
        for number in range(1, layers + 1):
            yield attention(f"block{number}.attention", hidden, heads, sequence)
            yield feed_forward(f"block{number}.feed_forward", hidden, width, sequence)

    made = tuple(blocks())
    if vocabulary:
        made = (*ends(vocabulary, hidden, sequence, made),)
    return Model("transformer", "blocks as in GPT-2 (Radford et al. 2019)", f"sequence of {sequence} tokens", made, 2)


def ends(vocabulary: int, hidden: int, sequence: int, blocks: tuple[Layer, ...]) -> Iterator[Layer]:
    """Layers of a decoder: an embedding with learned positions, the blocks, an output layer that shares the embedding's matrix.

    Args:
        vocabulary: rows of the embedding [count].
        hidden: width of a token [elements].
        sequence: tokens of a sample [count].
        blocks: layers between embedding and output.
    """
    yield embedding("embedding", vocabulary, hidden, sequence, (sequence * hidden,))
    yield from blocks
    yield Layer(
        "output",
        "output",
        (hidden, hidden),  # of the last normalisation
        macs=sequence * hidden * vocabulary,
        outputs=sequence * vocabulary,
        activations=sequence * (hidden + vocabulary),
        split=(False, False),
        ways=vocabulary,
    )
