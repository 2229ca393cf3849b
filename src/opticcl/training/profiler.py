"""Measures the layers of a PyTorch module on the local device, for `partition(..., times=FILE)`.

Needs the extra `torch`. One pass of the whole module records the inputs of each layer; then each runs alone, forward and
backward, and the median of several runs is taken. Time spent in nested layers is attributed to those layers.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from opticcl.errors import ParameterError, WorkloadError
from opticcl.training.times import Times
from opticcl.training.torch_model import import_torch, model_from_torch, runs_inside

if TYPE_CHECKING:
    from torch import nn

__all__ = ["profile"]


def profile(
    module: nn.Module,
    sample: Sequence[int],
    *,
    batch: int = 16,
    repeats: int = 10,
    warm_up: int = 3,
    device: str | None = None,
    integers: bool = False,
) -> Times:
    """Times of the layers that `model_from_torch` returns, under the same names.

    Args:
        module: takes one tensor; it is copied, not modified.
        sample: shape of one sample, without the batch.
        batch: samples of each run [count].
        repeats: measured runs [count].
        warm_up: runs before them [count].
        device: PyTorch device, such as cuda or cpu; None: cuda if available.
        integers: whether the tensor holds integers (tokens); zeros are run.
    Returns: times of `batch` samples; `opticcl.training.times.write_times` writes them to a file.
    Raises: UnsupportedError: torch is not installed. ParameterError: no runs or no samples. WorkloadError: the module does
        not run.
    """
    torch = import_torch()
    for name, value in (("batch", batch), ("repeats", repeats), ("warm_up", warm_up + 1)):
        if value < 1:
            raise ParameterError(f"profile: {name}={value} is too small")
    names = [layer.name for layer in model_from_torch(module, sample, integers=integers).layers]
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        there = copy.deepcopy(module).to(where).train()
        data = torch.zeros((batch, *sample), dtype=torch.long if integers else torch.float32, device=where)
        given = _inputs(there, data)
        wait = torch.cuda.synchronize if data.is_cuda else lambda: None
        measured = {path: _measure(there.get_submodule(path), *given[path], wait, warm_up, repeats) for path in given}
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise WorkloadError(f"profile: does not run on {where}: {' '.join(str(error).split())[:300]}") from None
    root = type(module).__name__
    own = {path or root: _own(there, path, measured) for path in measured}
    zero = (0.0, 0.0)  # a module that only keeps parameters for another one
    hardware = torch.cuda.get_device_name(data.device) if data.is_cuda else where
    return Times(
        f"{hardware}, PyTorch {torch.__version__}, batch {batch}",
        batch,
        {name: own.get(name, zero)[0] for name in names},
        {name: own.get(name, zero)[1] for name in names},
    )


def _inputs(module: nn.Module, data: Any) -> dict[str, tuple[tuple[Any, ...], dict[str, Any]]]:
    """Inputs of each nested module when the whole runs, by path."""
    torch = import_torch()
    given: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def hook(path: str) -> Callable[..., None]:
        def record(_module: object, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
            given.setdefault(path, (arguments, named))

        return record

    handles = [
        inside.register_forward_pre_hook(hook(path), with_kwargs=True) for path, inside in module.named_modules()
    ]
    try:
        with torch.no_grad():
            module(data)
    finally:
        for handle in handles:
            handle.remove()
    return given


def _measure(
    module: nn.Module,
    arguments: tuple[Any, ...],
    named: dict[str, Any],
    wait: Callable[[], None],
    warm_up: int,
    repeats: int,
) -> tuple[float, float]:
    """Median forward and backward time of a module run alone [s]."""
    torch = import_torch()
    arguments = tuple(_leaf(value) for value in arguments)
    forward, backward = [], []
    for run in range(warm_up + repeats):
        module.zero_grad()
        wait()
        start = time.perf_counter()
        made = module(*arguments, **named)
        wait()
        middle = time.perf_counter()
        ends = [tensor for tensor in _tensors(made) if tensor.requires_grad]
        ones = [torch.ones_like(tensor) for tensor in ends]
        wait()
        turn = time.perf_counter()
        if ends:
            torch.autograd.backward(ends, ones)
        wait()
        if run >= warm_up:
            forward.append(middle - start)
            backward.append(time.perf_counter() - turn if ends else 0.0)
    return statistics.median(forward), statistics.median(backward)


def _leaf(value: Any) -> Any:
    """The same values as a leaf of the autograd graph, with a gradient if the type allows."""
    if not hasattr(value, "detach"):
        return value
    found = value.detach().clone()
    return found.requires_grad_() if found.is_floating_point() else found


def _tensors(made: Any) -> list[Any]:
    if hasattr(made, "requires_grad"):
        return [made]
    if isinstance(made, dict):
        made = made.values()
    return [tensor for value in made for tensor in _tensors(value)] if hasattr(made, "__iter__") else []


def _own(module: nn.Module, path: str, measured: dict[str, tuple[float, float]]) -> tuple[float, float]:
    """Time of a module minus that of its direct children [s]."""
    inside = [measured[child] for child in runs_inside(module, path, measured)]
    whole = measured[path]
    return (
        max(whole[0] - sum(time_s for time_s, _ in inside), 0.0),
        max(whole[1] - sum(time_s for _, time_s in inside), 0.0),
    )
