"""Kinds of optical elements: where light that enters an element leaves it, and as which signal.

    kind          ports   state                             what it does
    emitter       0 : 1   signal of each wavelength         emits its signals; on one wavelength alone where it `emits` that
    laser         0 : 1   wavelength                        emits one wavelength without data
    comb          0 : 1   -                                 emits all wavelengths without data
    modulator     1 : 1   signal, of each wavelength or     replaces light without data by the signal
                          of all
    splitter      n : m   -                                 sends everything to every output
    combiner      n : 1   -                                 joins its inputs
    mux           n : 1   -                                 joins its inputs, which have different wavelengths
    mzi           1 : n   output                            sends all wavelengths to one output
    select        n : 1   input                             lets the light of one input pass, of all wavelengths
    gate          1 : 1   on                                lets light pass or absorbs it
    filter        1 : 1   wavelength; may be fixed          lets one wavelength pass, or all
    awgr          n : n   -                                 sends to output (input + wavelength) mod n
    cross         2 : 2   -                                 a micro-ring between two buses: swaps what is resonant
    ringbank      2 : 2   on, of each wavelength            the same, a ring for every wavelength
    wss           n : m   output of each (input,            switches by wavelength; where it selects, an output also
                          wavelength); input of each        absorbs what comes from other inputs
                          (output, wavelength)
    matrix        n : n   output of each input; input of    the same, for all wavelengths together
                          each output
    relay         n : 2n  output of each wavelength, by     hands light to the output of its input, or sends it on by one of
                          which it is sent on               the others, from n on; by n + its input alone where it
                                                            `keeps_plane`
    fibre, waveguide, edfa   1 : 1   -                      let everything pass
    demux         1 : w   -                                 one output a wavelength
    photodiode    1 : 0   -                                 light ends here
    control       0 : 0   any                               holds a setting, without light: what a transceiver can do once;
                                                            `tunes`: control of a transmitter, set to first wavelength x
                                                            (wavelengths + 1) + number of them; `receives`: control of a
                                                            photodiode, set to the node that sends

All functions work on whole columns: one row for each signal at each input that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import log10
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.ir.netlist import ElementGroup

__all__ = ["ABSORBED", "ALL", "KINDS", "ElementKind", "InputRows", "Passed", "StateOf", "splitting_db"]

ABSORBED = -1
"""Output of light that an element absorbs."""
ALL = -2
"""State of a filter that lets every wavelength pass."""

StateOf = Callable[[IntArray, IntArray, int], IntArray]
"""(elements, indices, value of devices that are not set) -> state of each."""


class Passed(NamedTuple):
    """What an element group does to rows of light.

    Args:
        output: of the element, int64 (n,), or `ABSORBED`.
        signal: from there on, int64 (n,); None: as before.
        moved: rows that a ring has moved to the other bus, bool (n,); None: none.
    """

    output: IntArray
    signal: IntArray | None = None
    moved: npt.NDArray[np.bool_] | None = None


class InputRows(NamedTuple):
    """Light at the inputs of one group.

    Args:
        element, input: of the group, and of the element, int64 (n,).
        wavelength, signal: int64 (n,).
    """

    element: IntArray
    input: IntArray
    wavelength: IntArray
    signal: IntArray


Passing = Callable[[ElementGroup, InputRows, StateOf, int], Passed]


@dataclass(frozen=True, slots=True)
class ElementKind:
    """One kind of element.

    Args:
        about: state, in words; "" if it has none.
        passing: (group, rows, states, number of wavelengths) -> where light leaves; None: it lets none pass.
        emits: whether light starts here.
        splits: whether light leaves by every output.
        parked: state of one that is not set.
    """

    about: str = ""
    passing: Passing | None = None
    emits: bool = False
    splits: bool = False
    parked: int = -1


def splitting_db(group: ElementGroup) -> float:
    """Loss of dividing light among the outputs, or of joining inputs without regard to wavelengths [dB].

    Source: any passive coupler of n ports passes 1/n of each input to each output.
    """
    if group.kind in ("splitter", "combiner"):
        return 10 * log10(max(group.n_in, group.n_out, 1))
    return 0.0


def _straight(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed(np.zeros_like(rows.element))


def _modulate(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    index = rows.wavelength if group.per_wavelength else np.zeros_like(rows.element)
    written = state(rows.element, index, -1)
    return Passed(np.zeros_like(rows.element), np.where(written >= 0, written, rows.signal))


def _gate(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed(np.where(state(rows.element, np.zeros_like(rows.element), 0) == 1, 0, ABSORBED))


def _filter(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    fixed = group.parameters.get("fixed")
    tuned = state(rows.element, np.zeros_like(rows.element), -1) if fixed is None else fixed(rows.element)
    return Passed(np.where((tuned == ALL) | (tuned == rows.wavelength), 0, ABSORBED))


def _route(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed((rows.input + rows.wavelength) % max(group.n_out, 1))


def _cross(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    residue, period = (group.parameters[name](rows.element) for name in ("residue", "period"))
    moved = rows.wavelength % period == residue
    return Passed(np.where(moved, 1 - rows.input, rows.input), moved=moved)


def _ringbank(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    moved = state(rows.element, rows.wavelength, 0) == 1
    return Passed(np.where(moved, 1 - rows.input, rows.input), moved=moved)


def _switch(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    """Routing states come first, one for each (input, wavelength); then, where it selects, one for each output."""
    span, wavelength = (num_wavelengths, rows.wavelength) if group.per_wavelength else (1, 0)
    output = state(rows.element, rows.input * span + wavelength, ABSORBED)
    if "selects" not in group.parameters:
        return Passed(output)
    index = (group.n_in + np.maximum(output, 0)) * span + wavelength
    return Passed(np.where(state(rows.element, index, -1) == rows.input, output, ABSORBED))


def _relay(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    onward = state(rows.element, rows.wavelength, -1)
    output = np.where(onward < 0, rows.input, group.n_in + onward)
    if "keeps_plane" in group.parameters:
        output = np.where((onward >= 0) & (onward != rows.input), ABSORBED, output)
    return Passed(output)


def _to_one(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed(state(rows.element, np.zeros_like(rows.element), ABSORBED))


def _from_one(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed(np.where(state(rows.element, np.zeros_like(rows.element), -1) == rows.input, 0, ABSORBED))


def _part(group: ElementGroup, rows: InputRows, state: StateOf, num_wavelengths: int) -> Passed:
    return Passed(np.where(rows.wavelength < group.n_out, rows.wavelength, ABSORBED))


KINDS: Mapping[str, ElementKind] = {
    "emitter": ElementKind("signal of each wavelength", emits=True),
    "laser": ElementKind("wavelength", emits=True),
    "comb": ElementKind(emits=True),
    "modulator": ElementKind("signal", _modulate),
    "splitter": ElementKind(passing=_straight, splits=True),
    "combiner": ElementKind(passing=_straight),
    "mux": ElementKind(passing=_straight),
    "mzi": ElementKind("output", _to_one),
    "select": ElementKind("input", _from_one),
    "gate": ElementKind("on or off", _gate, parked=0),
    "filter": ElementKind("wavelength", _filter),
    "awgr": ElementKind(passing=_route),
    "cross": ElementKind(passing=_cross),
    "ringbank": ElementKind("on or off, of each wavelength", _ringbank, parked=0),
    "wss": ElementKind("output of each input and wavelength", _switch),
    "matrix": ElementKind("output of each input, input of each output", _switch),
    "relay": ElementKind("plane by which each channel is sent on", _relay),
    "fibre": ElementKind(passing=_straight),
    "waveguide": ElementKind(passing=_straight),
    "edfa": ElementKind(passing=_straight),
    "demux": ElementKind(passing=_part),
    "photodiode": ElementKind("circuit that it receives"),
    "control": ElementKind("setting"),
}
"""Every kind of element by name."""
