"""Checks of a class of fabrics from outside the library, when it is registered and when it is made.

A class that lacks what every fabric has, or whose parameters hide members of `Fabric`, is refused. A public name that nothing
reads is named in a warning: as a rule it is a member under another name.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import sys
import warnings
from dataclasses import fields, is_dataclass

from opticcl.errors import FabricError
from opticcl.ir import Fabric, FabricNumbers, Resource
from opticcl.registry import is_of_library

__all__ = ["check_class", "check_values"]

PAGE = "docs/extending/plugins.md lists the members of Fabric"


def check_class(name: str, system: type[Fabric]) -> None:
    """Refuse a class that cannot be made or used; warn of public names that nothing reads.

    Args:
        name: under which it is registered.
        system: the class.
    Raises: FabricError: it is no class of fabrics, has no parameters, lacks a member or hides one.
    """
    if is_of_library(system):
        return
    if not (isinstance(system, type) and issubclass(system, Fabric)):
        raise FabricError(f"{name}: @register_fabric is for a class; write class Mine(Fabric)")
    known = {member for member in dir(Fabric) if not member.startswith("_")}
    if missing := sorted(system.__abstractmethods__):
        what = (inspect.getdoc(getattr(Fabric, missing[0])) or "").partition("\n")[0].rstrip(".")
        listed = ", ".join(missing)
        raise FabricError(f"{name}: class {system.__name__} has no {listed}; {missing[0]}: {what}; {PAGE}")
    if not is_dataclass(system) or ("__dataclass_fields__" not in vars(system) and inspect.get_annotations(system)):
        raise FabricError(
            f"{name}: class {system.__name__} is not a dataclass, so it has no parameters; write @dataclass(frozen=True, "
            "kw_only=True, repr=False) below @register_fabric"
        )
    parameters = [field.name for field in fields(system)]
    if hidden := sorted(known.intersection(parameters)):
        raise FabricError(f"{name}: parameter {hidden[0]} hides Fabric.{hidden[0]}; give it another name")
    if unread := _unread(system, known.union(parameters)):
        listed = ", ".join(f"{one}{_meant(one, known)}" for one in unread)
        text = f"{name}: nothing reads {listed} of class {system.__name__}; {PAGE}"
        warnings.warn(text, UserWarning, stacklevel=3)


def check_values(name: str, made: Fabric) -> None:
    """Refuse a fabric from outside the library whose numbers or resources are of another type.

    Args:
        name: of the fabric.
        made: the fabric.
    Raises: FabricError: with the member and the type.
    """
    if is_of_library(type(made)):
        return
    if not isinstance(made.numbers, FabricNumbers):
        raise FabricError(f"{name}: numbers is of type {type(made.numbers).__name__}; return FabricNumbers(...)")
    kinds = made.resources
    if not isinstance(kinds, tuple) or not all(isinstance(kind, Resource) for kind in kinds):
        raise FabricError(f"{name}: resources is not a tuple of Resource; return (Resource(...), ...)")


def _unread(system: type[Fabric], known: set[str]) -> list[str]:
    """Public names of a class, and of classes of its file that it extends, that are not known and not used in the file."""
    module = sys.modules.get(system.__module__)
    try:
        tree = ast.parse(inspect.getsource(module)) if module is not None else None
    except (OSError, TypeError, SyntaxError):  # typed at a prompt: there is no text to look in
        tree = None
    if tree is None:
        return []
    own = (one for one in system.__mro__ if one.__module__ == system.__module__)
    names = dict.fromkeys(name for one in own for name in vars(one) if not name.startswith("_") and name not in known)
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return [name for name in names if name not in used]


def _meant(name: str, known: set[str]) -> str:
    """A member with a similar name, one that shares a word before others, in brackets."""
    words = {word for word in name.split("_") if word != "num"}
    sharing = [member for member in sorted(known) if words.intersection(member.split("_"))]
    close = difflib.get_close_matches(name, sharing, n=1, cutoff=0.3) or difflib.get_close_matches(
        name, sorted(known), n=1
    )
    return f" (did you mean {close[0]}?)" if close else ""
