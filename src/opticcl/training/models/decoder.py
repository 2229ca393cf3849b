"""Llama 3, Mixtral and DeepSeek-V3."""

from __future__ import annotations

from typing import Any, Literal

from opticcl.files import read_toml
from opticcl.training.decoder import DecoderShape, decoder_model
from opticcl.training.model import Model
from opticcl.training.models import MODELS
from opticcl.training.models._layers import check_positive


def _preset(key: str, sequence: int | None) -> Model:
    """A decoder of the table."""
    table: dict[str, Any] = dict(read_toml("opticcl.training.models", "decoder.toml")[key])
    source = table.pop("source")
    if "n_routed_experts" in table:
        table["num_local_experts"] = table.pop("n_routed_experts")
    if sequence is not None:
        check_positive(key, sequence=sequence)
    return decoder_model(DecoderShape(**table), key, source, sequence or 0)


@MODELS.register("llama3")
def llama3(*, size: Literal["8b", "70b", "405b"] = "8b", sequence: int | None = None) -> Model:
    """Llama 3, dense: 8,030,261,248, 70,553,706,496 or 405,853,388,800 parameters.

    Args:
        size: 8b, 70b or 405b.
        sequence: tokens of a sample; None: 8,192.
    Raises: ParameterError: a sequence below 1.
    Source: Llama Team 2024, The Llama 3 herd of models.
    """
    return _preset(f"llama3_{size}", sequence)


@MODELS.register("mixtral")
def mixtral(*, sequence: int | None = None) -> Model:
    """Mixtral 8x7B: 46,702,792,704 parameters, of which a token uses 12.9e9.

    Args: sequence: tokens of a sample; None: 32,768.
    Raises: ParameterError: a sequence below 1.
    Source: Jiang et al. 2024, Mixtral of experts.
    """
    return _preset("mixtral_8x7b", sequence)


@MODELS.register("deepseek_v3")
def deepseek_v3(*, sequence: int | None = None) -> Model:
    """DeepSeek-V3: 671,026,419,200 parameters, of which a token uses 37e9.

    Args: sequence: tokens of a sample; None: 4,096, as in its pre-training.
    Raises: ParameterError: a sequence below 1.
    Source: DeepSeek-AI 2024, DeepSeek-V3 technical report.
    """
    return _preset("deepseek_v3", sequence)
