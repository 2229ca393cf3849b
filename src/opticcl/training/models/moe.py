"""Transformers with a mixture of experts."""

from __future__ import annotations

from collections.abc import Iterator

from opticcl.errors import ParameterError
from opticcl.training.model import Layer, Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import attention, check_heads, check_positive, feed_forward
from opticcl.training.models.transformer import ends


@MODELS.register("moe")
def moe(
    *,
    layers: int = 24,
    hidden: int = 2048,
    heads: int = 16,
    experts: int = 128,
    chosen: int = 1,
    every: int = 2,
    sequence: int = 2048,
    vocabulary: int = 51200,
) -> Model:
    """A transformer with a mixture of experts.

    In every second block, by default, tokens choose among feed-forward layers. The defaults have 52e9 parameters.

    Args:
        layers: blocks.
        hidden: width of a token; an expert is 4 x as wide inside.
        heads: of attention; divides `hidden`.
        experts: in each such layer.
        chosen: experts that a token goes to.
        every: blocks from one such layer to the next; the first is the `every`-th.
        sequence: tokens of a sample.
        vocabulary: rows of the embedding; 0 leaves it and the output layer out.
    Raises: ParameterError: less than 1, heads that do not divide, or more experts chosen than there are.
    Source: Rajbhandari et al. 2022, DeepSpeed-MoE, table 1: 1.3B+MoE-128.
    """
    check_positive(
        "moe", layers=layers, hidden=hidden, heads=heads, experts=experts, chosen=chosen, every=every, sequence=sequence
    )
    check_heads("moe", hidden, heads)
    check_positive("moe", vocabulary=vocabulary + 1)
    if chosen > experts:
        raise ParameterError(f"moe: chosen={chosen} of experts={experts}; choose {experts} at most")

    def blocks() -> Iterator[Layer]:
        for number in range(1, layers + 1):
            yield attention(f"block{number}.attention", hidden, heads, sequence)
            if number % every:
                yield feed_forward(f"block{number}.feed_forward", hidden, 4 * hidden, sequence)
            else:
                yield _experts(f"block{number}.experts", hidden, experts, chosen, sequence)

    made = tuple(blocks())
    if vocabulary:
        made = (*ends(vocabulary, hidden, sequence, made),)
    source = "blocks as in DeepSpeed-MoE (Rajbhandari et al. 2022)"
    return Model("moe", source, f"sequence of {sequence} tokens", made, 2)


def _experts(name: str, hidden: int, experts: int, chosen: int, sequence: int) -> Layer:
    """Normalisation, router and experts; the tensors of the experts are stacked."""
    width, tokens = 4 * hidden, sequence * chosen
    inside = (experts * hidden * width, experts * width, experts * width * hidden, experts * hidden)
    return Layer(
        name,
        "experts",
        (hidden, hidden, hidden * experts, *inside),
        macs=sequence * hidden * experts + 2 * tokens * hidden * width,
        outputs=sequence * hidden,
        activations=5 * sequence * hidden // 2 + 2 * tokens * width,
        split=(False, False, False, True, True, True, True),
        ways=experts,
        exchanged=tokens * hidden,
    )
