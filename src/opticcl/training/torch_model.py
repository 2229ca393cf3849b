"""A model from a PyTorch module, without running it: shapes are propagated with meta tensors, which hold no data.

Needs the extra `torch`. A layer is a module that owns parameters or computes matrix products itself, such as an attention
written with functions; the work of nested modules is theirs. Only matrix products count as operations.
"""

from __future__ import annotations

import copy
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.errors import UnsupportedError, WorkloadError
from opticcl.training.model import Kind, Layer, Model

if TYPE_CHECKING:
    from torch import nn

__all__ = ["OutputRecord", "import_torch", "model_from_torch", "runs_inside"]

_KINDS: dict[str, Kind] = {
    "Conv1d": "conv",
    "Conv2d": "conv",
    "Conv3d": "conv",
    "ConvTranspose2d": "conv",
    "Linear": "linear",
    "BatchNorm1d": "norm",
    "BatchNorm2d": "norm",
    "BatchNorm3d": "norm",
    "LayerNorm": "norm",
    "GroupNorm": "norm",
    "RMSNorm": "norm",
    "Embedding": "embedding",
}


def import_torch() -> Any:
    """The package torch.

    Raises: UnsupportedError: it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise UnsupportedError("PyTorch is not installed; pip install 'opticcl[torch]'") from None
    return torch


def model_from_torch(
    module: nn.Module, sample: Sequence[int], *, name: str = "", bytes_per_parameter: int = 4, integers: bool = False
) -> Model:
    """The layers of a module in execution order.

    Args:
        module: takes one tensor; it is copied to the meta device, not modified.
        sample: shape of one sample, without the batch: (3, 224, 224).
        name: of the model; default: its class.
        bytes_per_parameter: 4, or 2 for half precision [bytes].
        integers: whether the tensor holds integers (tokens).
    Raises: UnsupportedError: torch is not installed. WorkloadError: the module does not accept that shape, or its control
        flow depends on values, which meta tensors do not have.
    """
    torch = import_torch()
    from torch.utils.flop_counter import FlopCounterMode

    called = name or type(module).__name__
    shapes = copy.deepcopy(module).to("meta").train()
    owned = {id(p): path for path, p in shapes.named_parameters()}
    outputs = OutputRecord(shapes)
    batch = 2  # batch normalisation needs more than one sample
    data = torch.zeros((batch, *sample), dtype=torch.long if integers else torch.float32, device="meta")
    counter = FlopCounterMode(display=False)
    try:
        with counter, outputs, torch.no_grad():
            shapes(data)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, IndexError) as error:
        reason = " ".join(str(error).split())[:300]
        raise WorkloadError(f"{called}: cannot be traced with a sample of {tuple(sample)}: {reason}") from None
    operations = {path: sum(counts.values()) for path, counts in counter.get_flop_counts().items()}
    layers = _layers(shapes, outputs.order, outputs.elements, operations, batch, owned)
    source = f"PyTorch module {type(module).__module__}.{type(module).__qualname__}"
    shown = "x".join(map(str, sample)) or "a number"
    return Model(called, source, f"tensor of {shown}", tuple(layers), bytes_per_parameter)


class OutputRecord:
    """Context manager that records the order in which modules end and the number of elements that they return."""

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.order: list[str] = []
        self.elements: dict[str, int] = {}
        self._handles: list[Any] = []

    def __enter__(self) -> OutputRecord:
        for path, inside in self.module.named_modules():
            self._handles.append(inside.register_forward_hook(self._hook(path)))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _hook(self, path: str) -> Any:
        def record(_module: object, _given: object, made: object) -> None:
            if path not in self.elements:
                self.order.append(path)
            self.elements[path] = _elements(made)

        return record


def runs_inside(module: nn.Module, path: str, ran: Container[str]) -> Iterator[str]:
    """Paths of the children of a module that ran. A container that did not run itself, such as a ModuleList, is replaced by
    its children.

    Args:
        module: the whole model.
        path: of the module in it; "" is the model itself.
        ran: paths of all modules that ran.
    """
    for name, _ in module.get_submodule(path).named_children():
        child = f"{path}.{name}" if path else name
        if child in ran:
            yield child
        else:
            yield from runs_inside(module, child, ran)


def _elements(made: object) -> int:
    """Elements of all tensors that a module returns."""
    if hasattr(made, "numel"):
        return int(made.numel())
    if isinstance(made, dict):
        return sum(map(_elements, made.values()))
    if isinstance(made, (tuple, list)):
        return sum(map(_elements, made))
    return 0


def _layers(
    module: nn.Module,
    order: Sequence[str],
    elements: dict[str, int],
    operations: dict[str, int],
    batch: int,
    owned: dict[int, str],
) -> list[Layer]:
    # The counter names a module by its class and its path: ResNet.layer1.0.conv1.
    root = type(module).__name__
    inclusive = {path: operations.get(f"{root}.{path}" if path else root, 0) for path, _ in module.named_modules()}
    # Modules that never ran may still own parameters that other modules use.
    paths = [*order, *(path for path, _ in module.named_modules() if path not in elements)]
    made = []
    for path in paths:
        inside = module.get_submodule(path)
        tensors = tuple(
            p.numel()
            for local, p in inside.named_parameters(recurse=False)
            if p.requires_grad and owned.get(id(p)) == (f"{path}.{local}" if path else local)
        )
        own = inclusive[path] - sum(inclusive[child] for child in runs_inside(module, path, elements))
        if not tensors and own <= 0:
            continue
        count = elements.get(path, 0) // batch
        kind = _KINDS.get(type(inside).__name__, "other")
        made.append(Layer(path or root, kind, tensors, max(own, 0) // 2 // batch, count, count))
    return made
