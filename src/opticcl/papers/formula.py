"""Printed formulas, evaluated: arithmetic of numbers, letters and a few functions, and nothing else."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["ceil_log", "evaluate"]

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def ceil_log(base: int, value: int) -> int:
    """Logarithm, rounded up, in integers: the least k with base^k >= value.

    >>> ceil_log(129, 1024), ceil_log(2, 1024), ceil_log(5, 1)
    (2, 10, 0)
    """
    power, exponent = 1, 0
    while power < value:
        power, exponent = power * base, exponent + 1
    return exponent


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "ceil_log": ceil_log,
    "exp": math.exp,
    "floor": math.floor,
    "log": math.log,
    "log2": math.log2,
    "sqrt": math.sqrt,
}


def evaluate(formula: str, letters: Mapping[str, float] | None = None) -> float:
    """Value of a formula.

    Args:
        formula: arithmetic with + - * / // % **, parentheses and the functions ceil, ceil_log, exp, floor, log, log2 and sqrt.
        letters: values of its letters.
    Raises: ValueError: another operation, or a letter without a value.

    >>> evaluate("2 * (N - 1)", {"N": 8})
    14
    """
    value: float = _value(ast.parse(formula, mode="eval").body, letters or {})
    return value


def _value(node: ast.expr, letters: Mapping[str, float]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Name) and node.id in letters:
        return letters[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, letters)
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _BINARY[type(node.op)](_value(node.left, letters), _value(node.right, letters))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        return _FUNCTIONS[node.func.id](*(_value(argument, letters) for argument in node.args))
    raise ValueError(f"{ast.unparse(node)} is not arithmetic of the letters {', '.join(letters) or '(none)'}")
