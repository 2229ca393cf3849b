"""The changes that make a mutant: one comparison, operator, number, condition, element or statement of a function at a time.

Not changed: texts, docstrings, annotations, decorators, what an exception says, and statements outside of functions; `strict`
of a zip of columns of one table; whether a difference of exactly a tolerance, `slack(...)`, is within it.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.Pow: ast.Mult,
}  # fmt: skip
KEPT_METHODS = {"__repr__", "__str__"}


@dataclass(frozen=True)
class Mutant:
    """One change of one function.

    Args:
        path: of the source file, relative to src/opticcl.
        function: qualified name of the outermost function that is changed.
        line: where.
        change: "before => after", with a number behind it if the function has the same change more than once.
        kernel: whether numba compiles the function.
        lines: of the statement that is changed, its body left out; a test that runs none of them cannot detect it.
        source: of the module as it is.
        place: what is changed in the function.
        value: what is put there.
    """

    path: str
    function: str
    line: int
    change: str
    kernel: bool
    lines: range
    source: str
    place: "Place"
    value: ast.AST

    @cached_property
    def tree(self) -> ast.Module:
        """The changed module, made when asked for: copies of thousands of modules take minutes."""
        return _changed(self.source, self.function, self.place, self.value)

    @property
    def name(self) -> str:
        """Its identity, which does not depend on line numbers."""
        return f"{self.path} {self.function}: {self.change}"


def mutants_of(source: Path, root: Path) -> Iterator[Mutant]:
    """All mutants of a file, in the order of its lines.

    Args:
        source: the file.
        root: folder of the package, that names are relative to.
    """
    text = source.read_text("utf-8")
    tree = ast.parse(text)
    path = source.relative_to(root).as_posix()
    for name, function in functions_of(tree):
        kernel = any(
            word in ast.unparse(decorator) for decorator in function.decorator_list for word in ("njit", "intrinsic")
        )
        seen: Counter[str] = Counter()
        lines = _statement_lines(function)
        for node, place, value, what in sorted(_changes(function), key=lambda c: (c[0].lineno, c[0].col_offset)):
            seen[what] += 1
            change = what if seen[what] == 1 else f"{what} #{seen[what]}"
            yield Mutant(path, name, node.lineno, change, kernel, lines[id(node)], text, place, value)


def _statement_lines(function: ast.FunctionDef) -> dict[int, range]:
    """For each node the lines of its statement, decorators included; of a statement with a body those before the body."""
    found: dict[int, range] = {}

    def walk(node: ast.AST, lines: range) -> None:
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno
            first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
            lines = range(first, (last or node.lineno) + 1)
        found[id(node)] = lines
        for child in ast.iter_child_nodes(node):
            walk(child, lines)

    walk(function, range(function.lineno, function.lineno + 1))
    return found


def functions_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Functions of a module and methods of its classes, with qualified names; functions inside functions are part of them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name not in KEPT_METHODS:
                    yield f"{node.name}.{method.name}", method


Place = tuple[int, str, int | None]
"""Number of the parent in the function's order of nodes, field, position in the field's list."""


def _changes(function: ast.FunctionDef) -> Iterator[tuple[ast.expr | ast.stmt, Place, ast.AST, str]]:
    """(node, its place, what replaces it, "before => after") of every change of a function."""
    nodes = list(ast.walk(function))
    kept = _kept(function)
    for number, parent in enumerate(nodes):
        for field, value in ast.iter_fields(parent):
            for position, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(child, (ast.expr, ast.stmt)) or id(child) in kept:
                    continue
                for new in _replacements(child):
                    if isinstance(child, ast.If | ast.While):
                        before, after = f"if {ast.unparse(child.test)}", f"if {ast.unparse(new.test)}"
                    else:
                        before, after = ast.unparse(child), ast.unparse(new)
                    if before != after:
                        yield child, (number, field, position), new, f"{before} => {after}"


def _kept(function: ast.FunctionDef) -> set[int]:
    """Nodes that no change touches: docstrings, annotations, decorators, texts, what an exception says."""
    kept: set[int] = set()

    def keep(node: ast.AST | None) -> None:
        if node is not None:
            kept.update(id(inner) for inner in ast.walk(node))

    for node in ast.walk(function):
        if isinstance(node, ast.FunctionDef):
            for part in (*node.decorator_list, node.returns):
                keep(part)
            if isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant):
                keep(node.body[0])
        if isinstance(node, ast.arg):
            keep(node.annotation)
        if isinstance(node, ast.AnnAssign):
            keep(node.annotation)
        if isinstance(node, (ast.JoinedStr, ast.Slice)):
            keep(node)
        if isinstance(node, ast.keyword) and node.arg == "strict":
            keep(node.value)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            keep(node.exc)
    return kept


def _replacements(node: ast.expr | ast.stmt) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Compare(comparators=[right]) if "slack(" in ast.unparse(right):
            pass
        case ast.Compare(ops=[operator]) if type(operator) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(operator)]()], node.comparators)
        case ast.BinOp(op=operator) if type(operator) in OPERATORS and not isinstance(
            node.left, ast.Constant | ast.JoinedStr
        ):
            yield ast.BinOp(node.left, OPERATORS[type(operator)](), node.right)
        case ast.BoolOp():
            for i in range(len(node.values)):
                rest = node.values[:i] + node.values[i + 1 :]
                yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        case ast.UnaryOp(op=ast.Not() | ast.Invert() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.Tuple(ctx=ast.Load()) | ast.List(ctx=ast.Load()) if len(node.elts) > 1:
            for i in range(len(node.elts)):
                yield type(node)(node.elts[:i] + node.elts[i + 1 :], ast.Load())
        case ast.Call(func=ast.Attribute(attr="minimum" | "maximum" as name), args=[_, _]):
            other = {"minimum": "maximum", "maximum": "minimum"}[name]
            yield ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords)
        case ast.Call(func=ast.Name("min" | "max" as name)):
            other = {"min": "max", "max": "min"}[name]
            yield ast.Call(ast.Name(other, ast.Load()), node.args, node.keywords)
        case ast.AugAssign() | ast.Expr(value=ast.Call() | ast.YieldFrom() | ast.Yield()):
            yield ast.Pass()
        case ast.If() | ast.While() if not isinstance(node.test, ast.Constant):
            for value in (False, True) if isinstance(node, ast.If) else (False,):
                yield type(node)(ast.Constant(value), node.body, node.orelse)


def _changed(source: str, function: str, place: Place, value: ast.AST) -> ast.Module:
    """The module, in which that place of the function has the value."""
    copied = ast.parse(source)
    same = [f for name, f in functions_of(copied) if name == function][-1]
    number, field, position = place
    parent = list(ast.walk(same))[number]
    old = getattr(parent, field) if position is None else getattr(parent, field)[position]
    new = ast.copy_location(copy.deepcopy(value), old)
    if position is None:
        setattr(parent, field, new)
    else:
        getattr(parent, field)[position] = new
    return ast.fix_missing_locations(copied)
