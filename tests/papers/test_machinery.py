"""A claim's value comes from the library: a row that only calculates with printed numbers is listed here with its reason."""

import ast
from pathlib import Path

import opticcl.papers

PRINTED = {
    "O35": "the printed times of the testbed",
    "O35.rate": "the printed times of the testbed",
    "RAMP-4-10x": "printed rates of a node",
    "RAMP-4-64x": "printed rates of a node",
    "RAMP-F16-34": "printed shares of communication",
    "RAMP-F16-7.7": "printed shares of communication",
    "RAMP-F16-pp": "printed shares of communication",
    "RAMP-F16-pp-most": "printed shares of communication",
    "RAMP-T3-networks": "printed rates of a node and of a port",
    "RAMP-T3-sw-hpc": "a fitted number of switches; RAMP-T3-sw-hpc-bill has the library's",
    "RAMP-T3-sw-hpc-10:1": "as RAMP-T3-sw-hpc",
    "RAMP-T3-sw-hpc-64:1": "as RAMP-T3-sw-hpc",
    "RAMP-T6-all": "the formulas of table 6 against those of table 5, as printed",
}
"""Rows that use no module of the library but those of the claims, with what they calculate from."""

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


def test_every_row_asks_the_library():
    """But for those in the table, each of which must be in it for as long as it only calculates."""
    modules = Path(opticcl.papers.__file__).parent.glob("*.py")
    assert sorted(id for module in modules for id in arithmetic(module.read_text("utf-8"))) == sorted(PRINTED)


def test_arithmetic_is_found():
    """A claim that types a formula is found, one that asks a fabric through a helper is not."""
    head = "from opticcl.fabrics import fabric\ndef nodes():\n    return fabric('ramp').num_nodes\n"
    typed = "@claim('ramp', 'X1')\ndef one():\n    return 32 * 32 * 64\n"
    asked = "@claim('ramp', 'X2')\ndef two():\n    return nodes()\n"
    assert arithmetic(head + typed + asked) == ["X1"]
