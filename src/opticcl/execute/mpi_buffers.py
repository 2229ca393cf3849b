"""Buffer specifications of mpi4py as flat NumPy arrays.

A specification is memory, or [memory, type], [memory, count], [memory, count, type], [memory, count, displacement, type]; a
count may be (count, displacement). Memory is what exports Python's buffer protocol, DLPack or `__cuda_array_interface__` on the
host, contiguous in any order: it is sent as it lies. Elements of types without gaps are used in place, those of all others are
packed, and unpacked when they are received.

Source: MPI 4.1, sections 5.1.11 (extents) and 5.2 (MPI_PACKED matches every type).
"""

from __future__ import annotations

import ctypes
import operator
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from opticcl.errors import ParameterError
from opticcl.execute.mpi import load_mpi

__all__ = ["Held", "NoScheduleError", "held"]

HOST = (1, 3, 11)
"""Kinds of memory of DLPack that this process can read: of the CPU, pinned for CUDA, pinned for ROCm."""


class NoScheduleError(Exception):
    """A call that OptiCCL has no schedule for, and that MPI itself can carry; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a rank holds for a call.

    Args:
        array: its elements, flat.
        layout: (memory, items, type) where they were packed; None: the array is the memory itself.
    """

    array: np.ndarray
    layout: tuple[Any, int, Any] | None = None

    def store(self) -> None:
        """Unpack the elements where they were packed."""
        if self.layout is not None:
            mpi = load_mpi()
            mpi.COMM_SELF.Sendrecv([self.array, mpi.PACKED], 0, 0, [*self.layout], 0, 0)


def held(specification: Any, blocks: int, *, writes: bool) -> Held:
    """The elements of a buffer specification.

    Args:
        specification: as mpi4py takes it.
        blocks: equal parts, for which its count is that of each [count].
        writes: whether the call writes to it.
    Raises: ParameterError: no such specification. NoScheduleError: MPI itself takes it.
    """
    if specification is None:
        raise ParameterError("None is not memory; try a NumPy array")
    if type(specification) is np.ndarray:
        memory, count, displacement, datatype = specification, None, 0, None
    else:
        memory, count, displacement, datatype = _parts(specification)
    array = _flat(memory)
    if writes and not array.flags.writeable and array.size:
        raise ParameterError("the memory is read-only, and the call writes to it; try a copy")
    if datatype is None:
        dtype, extent, size = array.dtype, array.itemsize, array.itemsize
    else:
        dtype, extent, size = _of_type(datatype)
    if dtype.hasobject:
        raise ParameterError("an array of Python objects has no MPI type; try the lower-case method")
    offset = displacement * extent
    if count is None:
        length = array.nbytes - offset
        items, rest = divmod(length, extent) if extent > 0 else (0, 1)
        if rest:
            raise ParameterError(f"{length} bytes are not a multiple of elements of {extent} bytes; give a count")
        if items % blocks:
            raise ParameterError(f"{items} elements do not divide among {blocks} ranks; give a count")
    else:
        items = count * blocks
    end = offset + items * extent
    if datatype is None or (size == extent and datatype.is_predefined):
        if offset < 0 or end > array.nbytes:
            raise ParameterError(
                f"{items} elements of {extent} bytes at {offset} are more than {array.nbytes} bytes hold"
            )
        if offset or end < array.nbytes or array.dtype != dtype:
            array = array.view(np.uint8)[offset:end].view(dtype)
        return Held(array)
    low, reach = datatype.Get_true_extent()
    if items and (offset + low < 0 or offset + (items - 1) * extent + low + reach > array.nbytes):
        raise ParameterError(f"{items} elements of the type reach beyond the {array.nbytes} bytes of the memory")
    mpi = load_mpi()
    layout = array.view(np.uint8)[offset:], items, datatype
    packed = np.empty(items * size, np.uint8)
    mpi.COMM_SELF.Sendrecv([*layout], 0, 0, [packed, mpi.PACKED], 0, 0)
    return Held(packed.view(dtype), layout)


def _parts(given: Any) -> tuple[Any, int | None, int, Any]:
    """(memory, count, displacement, type) of a specification."""
    if not isinstance(given, (list, tuple)):
        return given, None, 0, None
    mpi = load_mpi()
    if not 2 <= len(given) <= 4:
        raise ParameterError(f"{type(given).__name__} of {len(given)} items is not a buffer; try [memory, count, type]")
    memory, *rest = given
    datatype = rest.pop() if len(rest) > 1 or isinstance(rest[0], (mpi.Datatype, str)) else None
    counts: Any = rest if len(rest) > 1 else rest[0] if rest else None
    if isinstance(counts, (list, tuple)):
        if len(counts) != 2:
            raise ParameterError(f"a count of {len(counts)} items; try a count, or (count, displacement)")
        count, displacement = counts
    else:
        count, displacement = counts, 0
    try:
        count = None if count is None else operator.index(count)
        displacement = operator.index(displacement or 0)
    except TypeError:
        raise ParameterError(f"count {counts!r} is not a whole number") from None
    if (count or 0) < 0 or displacement < 0:
        raise ParameterError(f"count {counts!r} is negative")
    if isinstance(datatype, str):
        try:
            datatype = mpi.Datatype.fromcode(datatype)
        except (KeyError, ValueError):
            raise ParameterError(f"{datatype!r} is not a code of a type; try an MPI type such as MPI.DOUBLE") from None
    if datatype is not None and not isinstance(datatype, mpi.Datatype):
        raise ParameterError(f"{type(datatype).__name__} is not an MPI type; try MPI.DOUBLE")
    return memory, count, displacement, datatype


def _flat(memory: Any) -> np.ndarray:
    """All of a memory as a flat array, in the order in which it lies."""
    if isinstance(memory, np.ndarray):
        array = memory
    elif memory is None:
        return np.empty(0, np.uint8)
    elif load_mpi().BOTTOM is memory or (isinstance(memory, int) and memory == load_mpi().BOTTOM):
        raise NoScheduleError("absolute addresses")
    else:
        array = _exported(memory)
    if array.flags.c_contiguous:
        return array.reshape(-1)
    if not array.flags.f_contiguous:
        raise ParameterError("the array is not contiguous; try numpy.ascontiguousarray")
    return array.T.reshape(-1)


def _exported(memory: Any) -> np.ndarray:
    """The array of an object that exports its memory."""
    try:
        view = memoryview(memory)
    except (TypeError, BufferError, ValueError):  # as mpi4py, the other protocols next
        pass
    else:
        try:
            return np.asarray(view)
        except ValueError:  # a format that NumPy does not know, such as that of ctypes
            return np.frombuffer(view.cast("B"), np.uint8)
    if hasattr(memory, "__dlpack__"):
        if int(memory.__dlpack_device__()[0]) not in HOST:
            raise ParameterError("the memory is that of a device; copy it to the host")
        try:
            return _of_capsule(memory.__dlpack__())
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise ParameterError(f"the memory cannot be exported: {str(error).splitlines()[0]}") from None
    interface = getattr(memory, "__cuda_array_interface__", None)
    if isinstance(interface, dict):
        if interface["data"][0] and not _readable(interface["data"][0]):
            raise ParameterError("the memory is that of a device; copy it to the host")
        return _at(
            memory, interface["data"], interface["shape"], np.dtype(interface["typestr"]), interface.get("strides")
        )
    raise ParameterError(f"{type(memory).__name__} is not memory; try a NumPy array")


class _Tensor(ctypes.Structure):
    """DLTensor of DLPack 0.2 to 1.1."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("kind", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def _of_capsule(capsule: Any) -> np.ndarray:
    """The array of a capsule of DLPack, which stays its owner; types that NumPy has not are those of their bytes."""
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    size = tensor.bits * tensor.lanes // 8
    try:
        dtype = np.dtype(f"{'iufVVcb'[tensor.kind]}{size}")
    except (IndexError, TypeError):
        dtype = np.dtype(f"V{size}")
    shape = tuple(tensor.shape[: tensor.dimensions])
    steps = tensor.strides[: tensor.dimensions] if tensor.strides else None
    strides = None if steps is None else tuple(step * dtype.itemsize for step in steps)
    return _at(capsule, ((tensor.data or 0) + tensor.offset, False), shape, dtype, strides)


@dataclass(frozen=True, slots=True)
class _Interface:
    """An object whose memory NumPy takes by its array interface."""

    owner: Any
    __array_interface__: dict[str, Any]


def _at(
    owner: Any, data: tuple[int, bool], shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None
) -> np.ndarray:
    """An array of memory that an object owns.

    Args:
        owner: kept while the array is in use.
        data: address, and whether it is read-only.
        shape, dtype, strides: of the array [count, type, bytes].
    """
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.asarray(
        _Interface(owner, {"version": 3, "data": data, "shape": shape, "typestr": dtype.str, "strides": strides})
    )


def _readable(address: int) -> bool:
    """Whether this process can read a byte: the kernel looks, so that memory of a device ends nothing."""
    reading, writing = os.pipe()
    try:
        return ctypes.CDLL(None).write(writing, ctypes.c_void_p(address), ctypes.c_size_t(1)) == 1
    finally:
        os.close(reading)
        os.close(writing)


def _of_type(datatype: Any) -> tuple[np.dtype, int, int]:
    """Type of the elements, extent and size of an item of an MPI type [bytes]."""
    mpi = load_mpi()
    if datatype == mpi.DATATYPE_NULL:
        raise ParameterError("MPI.DATATYPE_NULL is not a type; try MPI.DOUBLE")
    kinds = _kinds(datatype)
    size = datatype.Get_size()
    dtype = np.dtype(kinds.pop()) if len(kinds) == 1 else np.dtype(np.uint8)
    if size % dtype.itemsize:  # pairs of a value and an index, with a gap
        dtype = np.dtype(np.uint8)
    return dtype, datatype.Get_extent()[1], size


def _kinds(datatype: Any) -> set[str]:
    """Types of the elements of an MPI type, as NumPy writes them."""
    if datatype.is_predefined:
        return {datatype.typestr}
    base, combiner, details = datatype.decode()
    inner = details["datatypes"] if combiner == "STRUCT" else [base]
    return set().union(*map(_kinds, inner))
