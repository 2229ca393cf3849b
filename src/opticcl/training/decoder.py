"""Decoders of today's language models by their shape: Llama, Mistral, Qwen, Mixtral, DeepSeek.

In each block a normalisation without bias, attention with fewer key-value heads than heads (or with latent keys and values),
another normalisation, and a gated feed-forward layer or gated experts::

    h -> norm -> q, k, v -> attention -> o -> + -> norm -> gate, up -> silu(gate) * up -> down -> +

Attention is computed in tiles that are not kept for the backward pass (FlashAttention), and its products are counted for all
pairs of tokens, masked ones included, as in the usual formulas of model FLOPs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opticcl.errors import ParameterError
from opticcl.training.model import Layer, Model

__all__ = ["DecoderShape", "decoder_model"]

MOST_LAYERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderShape:
    """Shape of a decoder; the names are those of the config.json of its weights.

    Args:
        hidden_size: width of a token.
        intermediate_size: width of a feed-forward layer, and of an expert if `moe_intermediate_size` is 0.
        num_hidden_layers: blocks.
        num_attention_heads, num_key_value_heads: of attention; the first is a multiple of the second.
        vocab_size: rows of the embedding and of the output layer.
        max_position_embeddings: tokens of a sample if the caller gives none.
        head_dim: width of a head; 0: hidden_size / num_attention_heads.
        tie_word_embeddings: whether the output layer has the matrix of the embedding.
        attention_bias: whether queries, keys and values have biases.
        num_local_experts: experts of a block; 0 for a feed-forward layer.
        num_experts_per_tok: experts that a token goes to.
        moe_intermediate_size: width of an expert.
        n_shared_experts: experts that every token goes to.
        first_k_dense_replace: blocks with a feed-forward layer before those with experts.
        router_bias: whether the router has a bias for each expert.
        kv_lora_rank: width of latent keys and values; 0: none, then the other widths do not matter.
        q_lora_rank: width of latent queries; 0: none.
        qk_nope_head_dim, qk_rope_head_dim, v_head_dim: widths of a head with latent keys and values.
    Raises: ParameterError: a number out of range, or heads that do not divide.
    """

    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    num_key_value_heads: int = 0
    max_position_embeddings: int = 4096
    head_dim: int = 0
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    num_local_experts: int = 0
    num_experts_per_tok: int = 0
    moe_intermediate_size: int = 0
    n_shared_experts: int = 0
    first_k_dense_replace: int = 0
    router_bias: bool = False
    kv_lora_rank: int = 0
    q_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    v_head_dim: int = 0

    def __post_init__(self) -> None:
        heads, groups = self.num_attention_heads, self.key_value_heads
        _check_positive(
            "decoder",
            hidden_size=self.hidden_size,
            intermediate_size=self.intermediate_size,
            layers=self.num_hidden_layers,
            num_attention_heads=heads,
            num_key_value_heads=groups,
            vocab_size=self.vocab_size,
            max_position_embeddings=self.max_position_embeddings,
        )
        if heads % groups:
            raise ParameterError(f"decoder: num_key_value_heads={groups} does not divide num_attention_heads={heads}")
        if not self.kv_lora_rank and not self.head_dim and self.hidden_size % heads:
            raise ParameterError(
                f"decoder: num_attention_heads={heads} does not divide hidden_size={self.hidden_size}; give head_dim"
            )
        if self.num_local_experts and not 1 <= self.num_experts_per_tok <= self.num_local_experts:
            raise ParameterError(
                f"decoder: num_experts_per_tok={self.num_experts_per_tok} is not 1 to {self.num_local_experts}"
            )
        if self.kv_lora_rank and min(self.qk_nope_head_dim, self.qk_rope_head_dim, self.v_head_dim) < 1:
            raise ParameterError(
                "decoder: kv_lora_rank without qk_nope_head_dim, qk_rope_head_dim and v_head_dim; give all of them"
            )

    @property
    def key_value_heads(self) -> int:
        """Heads with keys and values of their own [count]."""
        return self.num_key_value_heads or self.num_attention_heads

    @property
    def head_width(self) -> int:
        """Width of a head."""
        return self.head_dim or self.hidden_size // self.num_attention_heads

    @property
    def expert_width(self) -> int:
        """Width of an expert."""
        return self.moe_intermediate_size or self.intermediate_size


def decoder_model(shape: DecoderShape, name: str, source: str, sequence: int = 0) -> Model:
    """The model of a shape.

    Args:
        shape: of the decoder.
        name, source: of the model.
        sequence: tokens of a sample; 0: max_position_embeddings [count].
    Raises: ParameterError: a sequence below 0.
    """
    tokens = sequence or shape.max_position_embeddings
    _check_positive(name, sequence=tokens)
    return Model(name, source, f"sequence of {tokens} tokens", tuple(_layers(shape, tokens)), 2)


def _layers(shape: DecoderShape, tokens: int) -> Iterator[Layer]:
    hidden, vocabulary = shape.hidden_size, shape.vocab_size
    elements = tokens * hidden
    yield Layer("embedding", "embedding", (vocabulary * hidden,), 0, elements, elements, (True,), vocabulary)
    attention = _latent_attention if shape.kv_lora_rank else _attention
    for number in range(1, shape.num_hidden_layers + 1):
        block = f"block{number}"
        yield attention(f"{block}.attention", shape, tokens)
        if not shape.num_local_experts or number <= shape.first_k_dense_replace:
            yield _gated(f"{block}.feed_forward", hidden, shape.intermediate_size, tokens)
            continue
        if shape.n_shared_experts:
            width = shape.n_shared_experts * shape.expert_width
            yield _gated(f"{block}.shared_expert", hidden, width, tokens, norm=False)
        yield _experts(f"{block}.experts", shape, tokens)
    own = () if shape.tie_word_embeddings else (vocabulary * hidden,)
    yield Layer(
        "output",
        "output",
        (hidden, *own),
        macs=tokens * hidden * vocabulary,
        outputs=tokens * vocabulary,
        activations=tokens * (hidden + vocabulary),
        split=(False, *(True for _ in own)),
        ways=vocabulary,
    )


def _attention(name: str, shape: DecoderShape, tokens: int) -> Layer:
    """Grouped-query attention; tensor-parallel devices divide the key-value heads and the heads that share them."""
    hidden, groups = shape.hidden_size, shape.key_value_heads
    query, other = shape.num_attention_heads * shape.head_width, groups * shape.head_width
    split = (hidden * query, hidden * other, hidden * other, query * hidden)
    biases = (query, other, other) if shape.attention_bias else ()
    return Layer(
        name,
        "attention",
        (hidden, *split, *biases),
        macs=tokens * sum(split) + 2 * tokens * tokens * query,
        outputs=tokens * hidden,
        activations=tokens * (2 * hidden + 2 * query + 2 * other),
        split=(False, *(True for _ in (*split, *biases))),
        ways=groups,
        gathered=tokens * 2 * other,
    )


def _latent_attention(name: str, shape: DecoderShape, tokens: int) -> Layer:
    """Attention with latent keys and values; tensor-parallel devices divide the heads and repeat what leads to the latents.

    Source: DeepSeek-AI 2024, DeepSeek-V2, section 2.1.
    """
    hidden, heads, latent = shape.hidden_size, shape.num_attention_heads, shape.kv_lora_rank
    query, value = heads * (shape.qk_nope_head_dim + shape.qk_rope_head_dim), heads * shape.v_head_dim
    key_value = heads * (shape.qk_nope_head_dim + shape.v_head_dim)
    down = latent + shape.qk_rope_head_dim
    whole: tuple[int, ...] = (hidden, hidden * down, latent)
    split: tuple[int, ...] = (latent * key_value, value * hidden)
    if shape.q_lora_rank:
        whole += (hidden * shape.q_lora_rank, shape.q_lora_rank)
        split += (shape.q_lora_rank * query,)
    else:
        split += (hidden * query,)
    matrices = sum(split) + hidden * (down + shape.q_lora_rank)
    return Layer(
        name,
        "attention",
        whole + split,
        macs=tokens * matrices + tokens * tokens * (query + value),
        outputs=tokens * hidden,
        activations=tokens * (2 * hidden + shape.q_lora_rank + down + query + key_value + value),
        split=(False,) * len(whole) + (True,) * len(split),
        ways=heads,
        gathered=tokens * down,
        gathered_whole=True,
    )


def _gated(name: str, hidden: int, width: int, tokens: int, *, norm: bool = True) -> Layer:
    """Gate, up and down with a normalisation: columns of the first two and rows of the third are divided."""
    split = (hidden * width, hidden * width, width * hidden)
    return Layer(
        name,
        "feed_forward",
        (*((hidden,) if norm else ()), *split),
        macs=tokens * sum(split),
        outputs=tokens * hidden,
        activations=tokens * ((2 if norm else 0) * hidden + 3 * width),
        split=(*((False,) if norm else ()), True, True, True),
        ways=width,
    )


def _experts(name: str, shape: DecoderShape, tokens: int) -> Layer:
    """Normalisation, router and gated experts; the tensors of the experts are stacked."""
    hidden, experts, width = shape.hidden_size, shape.num_local_experts, shape.expert_width
    chosen = tokens * shape.num_experts_per_tok
    bias = (experts,) if shape.router_bias else ()
    whole = (hidden, hidden * experts, *bias)
    return Layer(
        name,
        "experts",
        whole + (experts * hidden * width,) * 3,
        macs=tokens * hidden * experts + 3 * chosen * hidden * width,
        outputs=tokens * hidden,
        activations=tokens * 2 * hidden + chosen * (hidden + 3 * width),
        split=(False,) * len(whole) + (True,) * 3,
        ways=experts,
        exchanged=chosen * hidden,
    )


def _check_positive(name: str, **values: int) -> None:
    """Raises ParameterError: one of them is less than 1, or there are too many layers."""
    for key, value in values.items():
        if value < 1:
            raise ParameterError(f"{name}: {key}={value} is not positive; give at least 1")
        if key == "layers" and value > MOST_LAYERS:
            raise ParameterError(f"{name}: {key}={value} is more than {MOST_LAYERS:,}; give fewer")
