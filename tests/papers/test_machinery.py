"""A claim's value comes from the library: a row that only calculates with printed numbers has a basis that says so."""

import ast
from pathlib import Path

import pytest

import opticcl.papers
from opticcl.papers import paper_names, printed_claims

EXCEPTION = {"RAMP-T6-all"}
"""The formulas of table 6 against those of table 5, on every node: no module of the library has them."""

HELPERS = (
    "opticcl.papers",
    "opticcl.papers.formula",
    "opticcl.papers._inverse",
    "opticcl.errors",
    "opticcl.files",
    "opticcl.ir",
)


def arithmetic(source: str) -> list[str]:
    """Ids of the claims of a module whose functions reach no name that is imported from the library."""
    tree = ast.parse(source)
    library, own = set(), {}
    for node in tree.body:
        if (
            isinstance(node, ast.ImportFrom)
            and (node.module or "").startswith("opticcl")
            and node.module not in HELPERS
        ):
            library |= {name.asname or name.name for name in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            own[node.name] = node
        elif isinstance(node, ast.Assign):
            own |= {target.id: node for target in node.targets if isinstance(target, ast.Name)}

    def reaches(name: str, passed: frozenset[str] = frozenset()) -> bool:
        if name in library:
            return True
        names = {n.id for n in ast.walk(own[name]) if isinstance(n, ast.Name)} if name in own else set()
        return any(reaches(other, passed | {name}) for other in names - passed - {name})

    return [
        decorator.args[1].value
        for name, node in own.items()
        if isinstance(node, ast.FunctionDef) and not reaches(name)
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call) and decorator.func.id == "claim"
    ]


@pytest.mark.parametrize("paper", paper_names())
def test_every_row_asks_the_library(paper):
    """But for those whose basis says that they only calculate with printed or fitted numbers."""
    modules = Path(opticcl.papers.__file__).parent.glob(f"{paper}*.py")
    found = {id for module in modules for id in arithmetic(module.read_text("utf-8"))}
    claims = printed_claims(paper)
    assert {id for id in found if claims[id]["basis"] not in ("arithmetic", "fitted")} <= EXCEPTION


def test_arithmetic_is_found():
    """A claim that types a formula is found, one that asks a fabric through a helper is not."""
    head = "from opticcl.fabrics import fabric\ndef nodes():\n    return fabric('ramp').num_nodes\n"
    typed = "@claim('ramp', 'X1')\ndef one():\n    return 32 * 32 * 64\n"
    asked = "@claim('ramp', 'X2')\ndef two():\n    return nodes()\n"
    assert arithmetic(head + typed + asked) == ["X1"]
