"""What each element loses or adds: values of a fabric's optics by preset, with the user's own on top.

A file data/optics/<sheet>.toml has an entry for each value that a budget may need, also for those that the paper leaves
out:

    [wss16.loss]
    unit = "dB"
    source = "section 3.C gives 8 and 32 ports only"                 # no value: a budget that needs it is refused
    typical = { value = 13.9, source = "assumed: ..." }              # what another preset says

Preset `literal` is what the paper prints. Any other preset is laid over it, or over the one that the table `presets` names;
what it assumes says so in its source, and what was fitted to a printed result is in a preset called `fitted`, never in another.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from opticcl.data import load
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.physics.chain import Chain
from opticcl.physics.decibels import dbm_of_watts, splitting_loss_db
from opticcl.physics.light import LightPath, light_path_of

if TYPE_CHECKING:
    from opticcl.ir import Fabric

__all__ = ["LITERAL", "Optics", "Value", "chain_of", "check_channels", "geometry", "optics", "presets_of"]

LITERAL = "literal"
GEOMETRY = "geometry"
"""Table of a file whose entries shape paths; they are no values of elements and cannot be set."""
PRESETS = "presets"
"""Table of a file that says which preset another is laid over."""

_METRES = {"km": 1e3, "m": 1.0, "cm": 1e-2}
_WATTS = {"W": 1.0, "mW": 1e-3}
_NEVER_NEGATIVE = ("loss", "gain", "noise", "length", "penalty", "receiver", "transmitter")
_MOST = 1e6  # of any value: no element has more


@dataclass(frozen=True, slots=True)
class Value:
    """One value.

    Args:
        value: in its unit, None if nobody gives it.
        unit: dB, dBm, dB/km, dB/cm, km or cm.
        source: paper and section, "assumed: ...", "fitted: ..." or "given".
    """

    value: float | None
    unit: str
    source: str


@dataclass(frozen=True, slots=True)
class Optics:
    """All values of a fabric's optics under one preset.

    Args:
        sheet: name of the file they stand in.
        preset: which of them are laid over the paper's.
        values: by name: launch, sensitivity, floor, penalty, and <element>.loss, .gain, .noise, .output or .length.
    """

    sheet: str
    preset: str
    values: Mapping[str, Value]

    def get(self, name: str) -> float | None:
        """A value, None if it is missing or not on file."""
        found = self.values.get(name)
        return None if found is None else found.value

    def missing(self, names: list[str]) -> list[str]:
        """Those of the names that have no value, each once."""
        return [name for name in dict.fromkeys(names) if self.get(name) is None]

    def needed(self, names: list[str]) -> list[float]:
        """The values of these names.

        Raises: ParameterError: some are missing; the text names them and says how to give them.
        """
        lacking = self.missing(names)
        if lacking:
            others = [preset for preset in presets_of(self.sheet) if preset != self.preset]
            example = f"{lacking[0]}={'0' if self.unit(lacking[0]) == 'dBm' else '1'}{self.unit(lacking[0])}"
            raise ParameterError(
                f"{self.sheet}: preset {self.preset} has no {', '.join(lacking)}; set them, as in --set {example}, or "
                f"take --preset {' or '.join(others) or 'another'} (they stand in data/optics/{self.sheet}.toml)"
            )
        return [float(self.values[name].value or 0.0) for name in names]

    def unit(self, name: str) -> str:
        """Unit of a value, dB of one that is not on file."""
        return self.values[name].unit if name in self.values else "dB"

    def loss_db(self, kind: str) -> float:
        """What one piece of an element loses; where the loss goes with length, over its length [dB].

        Raises: ParameterError: a value is missing.
        """
        per_length = self.unit(f"{kind}.loss").removeprefix("dB").removeprefix("/")
        if not per_length:
            return self.needed([f"{kind}.loss"])[0]
        loss, length = self.needed([f"{kind}.loss", f"{kind}.length"])
        return loss * length * _METRES[self.unit(f"{kind}.length")] / _METRES[per_length]


def presets_of(sheet: str) -> tuple[str, ...]:
    """Presets that a file has, the paper's first, then by name."""
    found = {key for entry in _entries(sheet).values() for key, value in entry.items() if isinstance(value, dict)}
    return (LITERAL, *sorted(found))


def _layers(sheet: str, preset: str) -> list[str]:
    """The preset and those that it is laid over, itself first, without the paper's own."""
    below = load(f"optics/{sheet}.toml").get(PRESETS, {})
    layers = [] if preset == LITERAL else [preset]
    while layers and layers[-1] in below:
        layers.append(below[layers[-1]])
    return layers


def geometry(sheet: str, name: str) -> Any:
    """A value that shapes the paths of a fabric, such as the ports of its largest star coupler."""
    return load(f"optics/{sheet}.toml")[GEOMETRY][name]["value"]


def check_channels(fabric: Fabric) -> None:
    """Refuse more wavelengths than the sources of an optical fabric can make, where a paper says how many.

    Raises: ParameterError: more. UnsupportedError: no light path.
    """
    most = load(f"optics/{light_path_of(fabric).sheet}.toml").get(GEOMETRY, {}).get("channels")
    if most and fabric.num_wavelengths > most["value"]:
        raise ParameterError(
            f"{fabric.name}: wavelengths={fabric.num_wavelengths} lie outside the band: its sources have "
            f"{most['value']} channels ({most['source'].partition(':')[0]}); try {most['value']} or fewer"
        )


def optics(sheet: str, preset: str = LITERAL, settings: Mapping[str, Any] | None = None) -> Optics:
    """The values of a file under a preset, with some of them set.

    Args:
        sheet: name of the file: "oddl".
        preset: literal, or another that the file has.
        settings: values by name, numbers in the unit of the file or texts such as "0.3 dB".
    Raises: UnknownNameError: no such file or preset. ParameterError: no such value, or one that it cannot have.

    >>> optics("oddl").get("wss8.loss"), optics("oddl").get("wss16.loss")
    (6.8, None)
    """
    entries = _entries(sheet)
    key = preset.strip().lower().replace("-", "_")
    if key not in presets_of(sheet):
        raise UnknownNameError(
            f"{sheet}: unknown preset {preset!r} of its optics; known: {', '.join(presets_of(sheet))}"
        )
    layers = _layers(sheet, key)
    values = {}
    for name, entry in entries.items():
        chosen = next((entry[layer] for layer in layers if layer in entry), entry)
        values[name] = Value(chosen.get("value"), entry["unit"], chosen["source"])
    for name, given in (settings or {}).items():
        _check_known(sheet, values, name)
        values[name] = Value(_checked(sheet, values, name, given), values[name].unit, "given")
    return Optics(sheet, key, values)


def chain_of(path: LightPath, values: Optics, passed: npt.NDArray[np.bool_] | None = None) -> Chain:
    """The path with its values.

    Args:
        path: elements in order.
        values: of these elements.
        passed: which of the elements any light passes, (elements,); the others need no values. None: those of the extremes.
    Raises: ParameterError: values are missing, or a passive element is to amplify.
    """
    lit = np.any(path.extremes > 0, axis=0) if passed is None else passed
    values.needed(_names_needed(path, values, lit))
    loss, once, gain, most = (np.zeros(len(path.elements)) for _ in range(4))
    most += np.inf
    for k in np.flatnonzero(lit):
        element = path.elements[k]
        loss[k] = values.loss_db(element.kind)
        once[k] = splitting_loss_db(element.ways)
        gain[k] = values.get(f"{element.kind}.gain") or 0.0
        if gain[k] and not element.amplifies:
            raise ParameterError(
                f"{values.sheet}: {element.kind} is passive and has no gain; a loss is {element.kind}.loss"
            )
        limit = values.get(f"{element.kind}.output")
        most[k] = np.inf if limit is None else limit
    launch, sensitivity = values.needed(["launch", "sensitivity"])
    floor = values.needed(["floor"])[0] if "floor" in values.values else -np.inf
    penalty = values.needed(["penalty"])[0] if "penalty" in values.values else 0.0
    return Chain(launch, loss, once, gain, most, sensitivity, floor, penalty)


def _names_needed(path: LightPath, values: Optics, lit: npt.NDArray[np.bool_]) -> list[str]:
    """Names of the values that a chain of these elements must have, in the order of the path."""
    names = ["launch"]
    for element, passed in zip(path.elements, lit.tolist(), strict=True):
        if passed:
            names.append(f"{element.kind}.loss")
            names += [f"{element.kind}.gain"] * element.amplifies
            names += [f"{element.kind}.length"] * ("/" in values.unit(f"{element.kind}.loss"))
    return names + [name for name in ("penalty", "floor") if name in values.values] + ["sensitivity"]


def _entries(sheet: str) -> dict[str, dict[str, Any]]:
    """Entries of a file by name: an entry has a unit, a table of entries is an element."""
    try:
        file = load(f"optics/{sheet}.toml")
    except FileNotFoundError:
        raise UnknownNameError(f"{sheet}: there is no file of its optics, data/optics/{sheet}.toml") from None
    found: dict[str, dict[str, Any]] = {}
    for name, table in file.items():
        if name not in (GEOMETRY, PRESETS):
            found |= {name: table} if "unit" in table else {f"{name}.{key}": entry for key, entry in table.items()}
    return found


def _check_known(sheet: str, values: Mapping[str, Value], name: str) -> None:
    """Refuse a name that no value has.

    Raises: ParameterError: there is no such value.
    """
    if name in values:
        return
    kind, _, field = name.partition(".")
    amplifiers = [other.removesuffix(".gain") for other in values if other.endswith(".gain")]
    if field == "gain" and any(other.startswith(f"{kind}.") for other in values):
        who = ", ".join(amplifiers) or "nothing"
        raise ParameterError(f"{sheet}: {name}: {kind} is passive and has no gain; what amplifies here: {who}")
    close = difflib.get_close_matches(name, values, n=1)
    hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(values))
    raise ParameterError(f"{sheet}: its optics have no value {name!r}; {hint}")


def _checked(sheet: str, values: Mapping[str, Value], name: str, given: Any) -> float:
    """A value in the unit of the file.

    Raises: ParameterError: no number, another unit, a negative one where there is none, or absurdly large.
    """
    unit = values[name].unit
    match = re.fullmatch(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]*)\s*", str(given))
    if isinstance(given, bool) or not match or not math.isfinite(float(match[1])):
        raise ParameterError(f"{sheet}: {name}={given!r} is no number; write {name}=1{unit}")
    value, written = float(match[1]), match[2]
    if unit == "dBm" and written in _WATTS and value > 0:
        value = float(dbm_of_watts(value * _WATTS[written]))
    elif written and written != unit:
        factor = _factor(written, unit)
        if factor is None:
            raise ParameterError(f"{sheet}: {name}={given!r} is not in {unit}; write {name}=1{unit}")
        value *= factor
    if value < 0 and name.rpartition(".")[2] in _NEVER_NEGATIVE:
        raise ParameterError(f"{sheet}: {name}={value:g} {unit} is negative; it is 0 or more")
    if abs(value) > _MOST:
        raise ParameterError(f"{sheet}: {name}={value:g} {unit} is beyond {_MOST:,.0f} {unit}; check the number")
    return value


def _factor(written: str, unit: str) -> float | None:
    """From one unit of length, or of loss over length, to another; None if they are not of a kind."""
    if written in _METRES and unit in _METRES:
        return _METRES[written] / _METRES[unit]
    over, length = (u.removeprefix("dB/") for u in (written, unit))
    if written.startswith("dB/") and unit.startswith("dB/") and over in _METRES:
        return _METRES[length] / _METRES[over]
    return None
