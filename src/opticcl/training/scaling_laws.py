"""Scaling laws of language models: from a loss to parameters, batch and steps, and back.

Letters of the paper: N parameters without embeddings, L cross-entropy [nats a token], B batch [tokens], S steps.
Source: Kaplan et al. 2020, Scaling laws for neural language models; RAMP 7.2.1 takes its numbers of table 9 from there.
"""

from __future__ import annotations

from opticcl.errors import ParameterError
from opticcl.files import read_toml

__all__ = ["critical_batch_tokens", "loss_of", "parameters_for", "steps_to"]

_LAW = read_toml("opticcl.training", "scaling_laws.toml")
EXCESS_LOSS: float = _LAW["excess_loss"]["value"]


def loss_of(parameters: float) -> float:
    """Cross-entropy in the limit of infinite data and steps: (N_c / N)^alpha_N [nats per token].

    Raises: ParameterError: no parameters.

    >>> round(loss_of(574e6), 2)
    2.48
    """
    _positive("parameters", parameters)
    return float((_LAW["parameters_scale"] / parameters) ** _LAW["parameters_exponent"])


def parameters_for(cross_entropy: float) -> float:
    """Parameters that reach a cross-entropy, the inverse of `loss_of` [count].

    Raises: ParameterError: not above 0.
    """
    _positive("cross_entropy", cross_entropy)
    return float(_LAW["parameters_scale"] / cross_entropy ** (1 / _LAW["parameters_exponent"]))


def critical_batch_tokens(cross_entropy: float) -> float:
    """Batch beyond which more samples save few steps: B_* / L^(1/alpha_B) [tokens].

    Raises: ParameterError: not above 0.
    """
    _positive("cross_entropy", cross_entropy)
    return float(_LAW["batch_scale_tokens"] / cross_entropy ** (1 / _LAW["batch_exponent"]))


def steps_to(cross_entropy: float, batch_tokens: float) -> float:
    """Steps to a cross-entropy with some batch: S_c (0.05 L)^(-1/alpha_S) (1 + B_crit / B) [count].

    Args:
        cross_entropy: limit of the parameters, as in `loss_of` [nats per token].
        batch_tokens: of a step [tokens].
    Raises: ParameterError: one of them is not above 0.
    Reading: RAMP does not say how near to the limit it trains; 5 % of the loss gives its steps within 1.1 % in eight of
        ten rows.
    """
    _positive("batch_tokens", batch_tokens)
    least = _LAW["steps_scale"] * (EXCESS_LOSS * cross_entropy) ** (-1 / _LAW["steps_exponent"])
    return float(least * (1 + critical_batch_tokens(cross_entropy) / batch_tokens))


def _positive(name: str, value: float) -> None:
    if not value > 0:
        raise ParameterError(f"scaling law: {name}={value:g} is not above 0")
