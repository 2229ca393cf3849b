"""A decoder by the config.json that is published with its weights, or by a TOML file with the same keys::

model_type = "llama"                  # llama, mistral, qwen2, qwen3, mixtral, deepseek_v2 or deepseek_v3
hidden_size = 4096
intermediate_size = 14336
num_hidden_layers = 32
num_attention_heads = 32
num_key_value_heads = 8
vocab_size = 128256
sequence = 8192                       # tokens of a sample; default: max_position_embeddings

Keys that do not change the shape, such as rope_theta, are ignored. Other model types are refused: write their layers
(`opticcl.training.model_file`) or import the module (`opticcl.training.torch_model`).

Source: Hugging Face transformers, configuration classes of these models.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from opticcl.errors import ParameterError
from opticcl.reading import content_of, printable, reading, refusal
from opticcl.training.decoder import DecoderShape, decoder_model
from opticcl.training.model import Model

__all__ = ["is_config", "model_from_config", "read_config"]

MAX_FILE_BYTES = 2**20
MOST = 2**31
TYPES = ("llama", "mistral", "qwen2", "qwen3", "mixtral", "deepseek_v2", "deepseek_v3")
_NAMES = {"n_routed_experts": "num_local_experts", "num_experts": "num_local_experts"}  # other names of a field
_FIELDS = {field.name: field for field in fields(DecoderShape)}
_FLAGS = {name for name, field in _FIELDS.items() if field.type == "bool"}


def is_config(table: Mapping[str, Any]) -> bool:
    """Whether a table is of this form."""
    return "model_type" in table or "hidden_size" in table


def read_config(path: Path) -> Model:
    """The decoder of a config.json.

    Raises: WorkloadError: invalid JSON, another model type, or a missing or invalid value.
    """
    with reading(path, "config.json of a model") as file:
        content = content_of(path, file, MAX_FILE_BYTES, "is it a config.json?")
    try:
        table = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"is not valid JSON: {error}; give the config.json of a model") from None
    if not isinstance(table, dict):
        raise refusal(path, "is a list or a value; give the config.json of a model, an object")
    return model_from_config(table, path)


def model_from_config(table: Mapping[str, Any], where: Path | str) -> Model:
    """The decoder of a parsed file.

    Args:
        table: keys and values.
        where: the file, for messages.
    Raises: WorkloadError: another model type, or a missing or invalid value.
    """
    kind = table.get("model_type")
    if kind not in TYPES:
        raise refusal(
            where,
            f"model_type: {printable(str(kind))[:40]!r} is not one of {', '.join(TYPES)}; "
            "write its layers as TOML or import the module, see docs/training.md",
        )
    given: dict[str, Any] = {}
    for key, value in table.items():
        name = _NAMES.get(key, key)
        if name in _FIELDS and value is not None:
            given[name] = _checked(value, key, name in _FLAGS, where)
    if kind in ("deepseek_v2", "deepseek_v3"):
        given.setdefault("router_bias", kind == "deepseek_v3")
    else:
        for name in ("kv_lora_rank", "q_lora_rank", "n_shared_experts", "first_k_dense_replace"):
            given.pop(name, None)
    if kind == "qwen2":
        given.setdefault("attention_bias", True)
    if missing := [name for name in _required() if name not in given]:
        raise refusal(where, f"{missing[0]} is missing; a config.json of type {kind} has it")
    sequence = table.get("sequence")
    tokens = 0 if sequence is None else _checked(sequence, "sequence", False, where)
    try:
        shape = DecoderShape(**given)
        called = printable(str(table.get("name") or table.get("_name_or_path") or Path(where).stem))[:80]
        return decoder_model(shape, called, printable(str(where)), int(tokens))
    except ParameterError as error:
        raise refusal(where, str(error)) from None


def _required() -> list[str]:
    """Fields without a default."""
    from dataclasses import MISSING

    return [name for name, field in _FIELDS.items() if field.default is MISSING]


def _checked(value: Any, key: str, flag: bool, where: Path | str) -> int | bool:
    """A flag or a whole number.

    Args:
        value: as written.
    Raises: WorkloadError: another type, or out of range.
    """
    if flag:
        if not isinstance(value, bool):
            raise refusal(where, f"{key}: {printable(str(value))[:40]!r} is neither true nor false")
        return value
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
        raise refusal(where, f"{key}: {printable(str(value))[:40]!r} is not a whole number from 0 to 2**31")
    return value
