"""Compute a design space and answer questions about it; check the claims of the papers.

FILE.toml describes a design space: its axes are fabrics, numbers of nodes, sizes and assumptions. `run` computes its points,
the verbs from `breakeven` to `tornado` answer a question from them. Any other verb is a study of one question.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opticcl.cli._command import Verb

__all__ = ["extra_names", "extra_verb"]


def extra_names() -> list[str]:
    """Names of the registered studies, which are verbs too."""
    from opticcl.studies import STUDIES

    return list(STUDIES.names())


def extra_verb(text: str) -> Verb | None:
    """The verb of a registered study; None: there is none of this name.

    Args: text: "name:key=value,...".
    """
    from opticcl.cli.study._named import named_study

    return named_study(text)
