"""The process group that `init_process_group("opticcl")` creates: the calls of torch, each submitted to the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo

from opticcl.errors import ExecutionError, ParameterError
from opticcl.execute.torch.agreement import Agreement
from opticcl.execute.torch.collectives import GroupCollectives, Planner
from opticcl.execute.torch.connections import Connections
from opticcl.execute.torch.executor import FutureWork, TorchExecutor
from opticcl.execute.torch.fresh_store import fresh_store
from opticcl.execute.torch.profiling import record_call
from opticcl.execute.torch.reductions import op_name, root_of
from opticcl.execute.torch.settings import Settings

__all__ = ["OpticclProcessGroup"]


class OpticclProcessGroup(dist.ProcessGroup):  # type: ignore[misc]
    """A process group whose collectives execute verified schedules.

    Args:
        store: of torch, for this group.
        rank, size: of this process in the group.
        timeout: longest duration of a message.
        planner: compiles, verifies and cuts plans; called on rank 0 of the group only.
        settings: of the backend.
        nodes: global rank of each rank of the group.
    """

    def __init__(
        self,
        store: Any,
        rank: int,
        size: int,
        timeout: timedelta,
        planner: Planner,
        settings: Settings,
        nodes: Sequence[int],
    ) -> None:
        super().__init__(rank, size)
        self._rank, self._size, self._timeout, self._store = rank, size, timeout, store
        self._planner, self._settings, self._nodes = planner, settings, nodes
        own = fresh_store(dist.PrefixStore("opticcl", store), rank, size, timeout)
        self._gloo = gloo = ProcessGroupGloo(dist.PrefixStore("p2p", own), rank, size, timeout=timeout)
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.CUSTOM, self._gloo)
        self._connections = transport = Connections(
            own, rank, size, lambda: gloo.options._timeout
        )  # which callers may change
        self._executor = TorchExecutor(transport)
        if rank == 0:
            own.set("check", str(settings.check))
        check = settings.check if rank == 0 else own.get("check") == b"True"
        self._agreement = Agreement(transport, own, rank, size, timeout, tuple(nodes), check)
        self._collectives = GroupCollectives(
            self._executor, transport, self._agreement, own, rank, size, timeout, planner, settings.log
        )
        self._name = self._description = ""
        self._coalesced: list[FutureWork] | None = None

    # --- what callers ask of a group ---------------------------------------------------------------------------------

    def getSize(self) -> int:  # noqa: N802 (names of torch)
        """Ranks of the group."""
        return self._size

    def getRank(self) -> int:  # noqa: N802
        """This rank."""
        return self._rank

    def size(self) -> int:
        """Ranks of the group."""
        return self._size

    def rank(self) -> int:
        """This rank."""
        return self._rank

    def name(self) -> str:
        """Name of the backend."""
        return "opticcl"

    def getBackendName(self) -> str:  # noqa: N802
        """Name of the backend."""
        return "opticcl"

    @property
    def group_name(self) -> str:
        """Name under which torch knows the group."""
        return self._name

    def getGroupName(self) -> str:  # noqa: N802
        """Name under which torch knows the group."""
        return self._name

    def setGroupName(self, name: str) -> None:  # noqa: N802
        """Set the name."""
        self._name = name

    def _set_group_name(self, name: str) -> None:
        self._name = name

    @property
    def group_desc(self) -> str:
        """Description of the group."""
        return self._description

    def getGroupDesc(self) -> str:  # noqa: N802
        """Description of the group."""
        return self._description

    def _set_group_desc(self, text: str) -> None:
        self._description = text

    def get_group_store(self) -> Any:
        """The store of torch for this group."""
        return self._store

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> Any:
        """A group of some of the ranks, this one among them; each of them calls this with the same ranks.

        Args:
            ranks: of this group, in the order of the new one.
            timeout: longest duration of a message; None: that of this group.
            opts, device_types: of other backends.
            group_name, group_desc: under which torch knows the new group.
        Raises: ParameterError: ranks that this group has not, or has once; this rank is none of them.
        """
        ranks = list(ranks)
        if len(set(ranks)) < len(ranks) or not set(ranks) <= set(range(self._size)) or self._rank not in ranks:
            raise ParameterError(
                f"split_group: ranks={ranks} are not different ranks of 0 to {self._size - 1} with {self._rank}"
            )
        name = group_name or f"{self._name}/{'.'.join(map(str, ranks))}"
        part = OpticclProcessGroup(
            dist.PrefixStore(f"split/{name}", self._store),
            ranks.index(self._rank),
            len(ranks),
            timeout or self._timeout,
            self._planner.part(ranks),
            self._settings,
            [self._nodes[rank] for rank in ranks],
        )
        part._set_group_name(name)
        part._set_group_desc(group_desc or "")
        return part

    def shutdown(self) -> None:
        """Finish all calls, end the worker thread and close the connections."""
        self._executor.close()
        self._connections.close()

    abort = shutdown

    # --- collectives that callers in C++ and Python reach ------------------------------------------------------------

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce a tensor over all ranks, in place."""
        (tensor,) = tensors
        op = op_name(opts)
        call = partial(self._collectives.all_reduce, tensor, op)
        return self._submit("all_reduce", tensors, call, tensors, opts=opts)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce several tensors, one flat buffer per type."""
        op = op_name(opts)

        def reduce_type(some: list[torch.Tensor]) -> None:
            flat = torch.cat([tensor.reshape(-1) for tensor in some])
            self._collectives.all_reduce(flat, op)
            parts = flat.split([tensor.numel() for tensor in some])
            for tensor, part in zip(some, parts, strict=True):
                tensor.copy_(part.view(tensor.shape))

        kinds = dict.fromkeys(tensor.dtype for tensor in tensors)
        calls = [partial(reduce_type, [tensor for tensor in tensors if tensor.dtype == kind]) for kind in kinds]
        total = sum(tensor.numel() for tensor in tensors)
        return self._submit_several("all_reduce", tensors, tensors, calls, (total, total))

    def reduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Reduce a tensor to one rank."""
        (tensor,) = tensors
        op, root = op_name(opts), root_of(opts)

        def call() -> None:
            flat = tensor.reshape(-1)
            result = flat if self._rank == root else None
            if result is not None and not tensor.is_contiguous():
                result = flat.clone()
            self._collectives.run("reduce", root, flat, result, flat.numel(), op)
            if result is not None:
                self._collectives.divide(result, op)
                tensor.copy_(result.view(tensor.shape))

        return self._submit("reduce", tensors, call, tensors, opts=opts)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        """Send a tensor of one rank to all."""
        (tensor,) = tensors
        root = root_of(opts)

        def call() -> None:
            flat = tensor.reshape(-1)
            self._collectives.run("broadcast", root, flat if self._rank == root else None, flat, flat.numel())
            if not tensor.is_contiguous():
                tensor.copy_(flat.view(tensor.shape))

        return self._submit("broadcast", tensors, call, tensors, opts=opts)

    def barrier(self, opts: Any = None) -> Any:
        """Wait for all ranks."""
        token = torch.zeros(1, dtype=torch.uint8)
        call = partial(self._collectives.run, "barrier", 0, token, token, 1)
        return self._submit("barrier", [token], call, [], (0, 0), opts=opts)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Gather a tensor of every rank into a list."""
        (out,), (given,) = outputs, inputs

        def call() -> None:
            flat = given.reshape(-1)
            result = torch.empty(flat.numel() * self._size, dtype=given.dtype)
            self._collectives.run("all_gather", 0, flat, result, result.numel())
            for tensor, part in zip(out, result.view(self._size, -1), strict=True):
                tensor.copy_(part.view(tensor.shape))

        lengths = (given.numel() * self._size, given.numel())
        return self._submit("all_gather", [given, *out], call, out, lengths, self._size + 1, opts)

    def all_gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """Gather a tensor of every rank into one."""
        call = partial(self._collectives.all_gather, output, given)
        return self._submit("all_gather", [given], call, [output], opts=opts)

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several gathers of one tensor each."""
        total = sum(given.numel() for given in inputs)
        calls = [partial(self._collectives.all_gather, *pair) for pair in zip(outputs, inputs, strict=False)]
        return self._submit_several("all_gather", outputs, inputs, calls, (total * self._size, total))

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several gathers into lists: for each rank, or as Gloo takes them."""
        self._start_coalescing()
        for i, given in enumerate(inputs):
            self.allgather([[row[i] for row in outputs]], [given], opts)
        return self._end_coalescing()

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Reduce a list of tensors; every rank gets one of them."""
        (output,), (given,) = outputs, inputs
        op = op_name(opts)

        def call() -> None:
            self._collectives.reduce_scatter(output, torch.cat([tensor.reshape(-1) for tensor in given]), op)

        lengths = (output.numel(), output.numel() * self._size)
        return self._submit("reduce_scatter", [*given, output], call, outputs, lengths, self._size + 1, opts)

    def reduce_scatter_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Any:
        """Reduce a tensor; every rank gets a block of it."""
        op = op_name(opts)
        call = partial(self._collectives.reduce_scatter, output, given, op)
        return self._submit("reduce_scatter", [given], call, [output], opts=opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Any:
        """Several reductions of one tensor each."""
        op = op_name(opts)
        total = sum(output.numel() for output in outputs)
        pairs = zip(outputs, inputs, strict=False)
        calls = [partial(self._collectives.reduce_scatter, output, given, op) for output, given in pairs]
        return self._submit_several("reduce_scatter", outputs, inputs, calls, (total, total * self._size))

    def all_to_all_single(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_splits: list[int],
        input_splits: list[int],
        opts: Any = None,
    ) -> Any:
        """Send a block of a tensor to every rank; blocks of unequal size travel directly, without a schedule."""

        def call() -> None:
            parts = given.split(list(input_splits or [self._share(given)] * self._size))
            places = output.split(list(output_splits or [self._share(output)] * self._size))
            self._collectives.all_to_all(list(places), list(parts), (output, given))

        return self._submit("all_to_all", [given], call, [output], opts=opts)

    def _share(self, tensor: torch.Tensor) -> int:
        """Rows of a tensor for each rank."""
        rows = tensor.shape[0] if tensor.dim() else 0
        if tensor.dim() == 0 or rows % self._size:
            raise ParameterError(f"{rows} rows do not divide among {self._size} ranks")
        return rows // self._size

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Send a tensor to every rank; tensors of unequal size travel directly, without a schedule."""
        lengths = (sum(part.numel() for part in outputs), sum(part.numel() for part in inputs))
        call = partial(self._collectives.all_to_all, outputs, inputs)
        return self._submit("all_to_all", [*inputs, *outputs], call, outputs, lengths, opts=opts)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        """Gather a tensor of every rank on one rank."""
        (given,), root = inputs, root_of(opts)
        out = outputs[0] if self._rank == root else []

        def call() -> None:
            flat = given.reshape(-1)
            result = torch.empty(flat.numel() * self._size, dtype=given.dtype) if self._rank == root else None
            self._collectives.run("gather", root, flat, result, flat.numel() * self._size)
            if result is not None:
                for tensor, part in zip(out, result.view(self._size, -1), strict=True):
                    tensor.copy_(part.view(tensor.shape))

        lengths = (given.numel() * self._size, given.numel())
        equal = len(inputs) + self._size * (self._rank == root)
        return self._submit("gather", [given, *out], call, out, lengths, equal, opts)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        """Send a tensor of one rank to every rank."""
        (output,), root = outputs, root_of(opts)
        given = inputs[0] if self._rank == root else []

        def call() -> None:
            flat = torch.cat([tensor.reshape(-1) for tensor in given]) if given else None
            result = torch.empty(output.numel(), dtype=output.dtype)
            self._collectives.run("scatter", root, flat, result, output.numel() * self._size)
            output.copy_(result.view(output.shape))

        lengths = (output.numel(), output.numel() * self._size)
        equal = 1 + self._size * (self._rank == root)
        return self._submit("scatter", [*given, output], call, outputs, lengths, equal, opts)

    _allgather_base = all_gather_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    _reduce_scatter_base = reduce_scatter_single
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced
    alltoall_base = all_to_all_single

    # --- messages of users --------------------------------------------------------------------------------------------

    def send(self, tensors: list[torch.Tensor], dst: int, tag: int = 0) -> Any:
        """Send a tensor to a rank."""
        return self._gloo.send(tensors, dst, tag)

    def recv(self, tensors: list[torch.Tensor], src: int, tag: int = 0) -> Any:
        """Receive a tensor from a rank."""
        return self._gloo.recv(tensors, src, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Any:
        """Receive a tensor from any rank."""
        return self._gloo.recv_anysource(tensors, tag)

    # --- several calls at once -----------------------------------------------------------------------------------------

    def _start_coalescing(self, device: torch.device | None = None) -> None:
        """Begin a group of calls that are waited for together."""
        self._coalesced = []

    def _end_coalescing(self, device: torch.device | None = None) -> Any:
        """End it; returns a Work of all its calls."""
        works, self._coalesced = self._coalesced or [], None

        def results() -> list[torch.Tensor]:
            return [tensor for work in works for tensor in work.result()]

        return self._executor.submit("coalesced calls", results)

    def _submit_several(
        self,
        name: str,
        outputs: list[torch.Tensor],
        inputs: list[torch.Tensor],
        calls: Sequence[Callable[[], None]],
        lengths: tuple[int, int],
    ) -> Any:
        """Submit calls of one collective as one; all ranks agree on all of them before the first."""
        listed = ", ".join(f"{tensor.dtype} of {tensor.numel()} elements" for tensor in inputs)
        call = partial(self._collectives.several, name, f"{name} of {len(inputs)} tensors ({listed})", calls)
        if len(outputs) != len(inputs):
            call = partial(self._collectives.refuse, name, f"{len(inputs)} inputs for {len(outputs)} results")
        return self._submit(name, inputs, call, outputs, lengths)

    def _submit(
        self,
        name: str,
        given: list[torch.Tensor],
        call: Callable[[], None],
        result: list[torch.Tensor],
        lengths: tuple[int, int] | None = None,
        equal: int = 0,
        opts: Any = None,
    ) -> Any:
        """Record the call where a profiler runs, and run it; a call that cannot be is refused on every rank.

        Args:
            lengths: elements of output and input, where these are not the first tensors above [count].
            equal: tensors of one size that it takes; 0: any [count].
            opts: of the call, which say whether the caller waits.
        """
        problem = problem_of([*given, *result], equal, len(given))

        def run() -> list[torch.Tensor]:
            begun = self._collectives.calls
            try:
                if problem is not None:
                    self._collectives.refuse(name, problem)
                call()
            except ExecutionError as error:
                raise self._agreement.with_first_failure(error) from None
            except Exception as error:
                if self._collectives.calls == begun:  # this rank alone: the others wait for its word
                    self._collectives.refuse(name, str(error).partition("\n")[0] or repr(error))
                raise
            return result

        if torch._C._autograd._profiler_enabled() and given:
            out, into = lengths or (result[0].numel() if result else given[0].numel(), given[0].numel())
            record_call(name, out, into, given[0].dtype)
        work = self._executor.submit(name, run, waits=not getattr(opts, "asyncOp", True))
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work


def problem_of(tensors: list[torch.Tensor], equal: int, count: int) -> str | None:
    """Why a call on these tensors cannot be; None if it can.

    Args:
        tensors: all of the call.
        equal: tensors that it takes, all with as many elements; 0: any [count].
        count: tensors that it got [count].
    """
    for each in tensors:
        if not each.is_cpu:
            return f"a tensor on {each.device} in a group for CPU tensors; move it to the CPU"
        if each.is_sparse:
            return "sparse tensors are not available; use to_dense()"
    if equal and count != equal:
        return f"{count - 1} tensors in the list, not {equal - 1}; each rank has one"
    sizes = sorted({tensor.numel() for tensor in tensors})
    return f"tensors of {sizes} elements; all must be equal" if equal and len(sizes) > 1 else None


def _leave_out_of_graphs() -> None:
    """Keep torch.compile from compiling the methods of the group, which it meets where a compiled model communicates."""
    try:
        from torch._C._dynamo.eval_frame import _FrameAction, _FrameExecStrategy, set_code_exec_strategy
    except ImportError:  # another torch: its compiler reports the function
        return
    for function in vars(OpticclProcessGroup).values():
        if isinstance(function, FunctionType):
            set_code_exec_strategy(function.__code__, _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP))


_leave_out_of_graphs()
