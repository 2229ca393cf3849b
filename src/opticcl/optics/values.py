"""Values of a fabric's optics by preset, with the user's own on top.

A fabric's table has an entry for each value that a budget may need, also for those that the paper leaves out:

    [optics.wss16.loss]
    unit = "dB"
    source = "section 3.C gives 8 and 32 ports only"                 # no value: a budget that needs it is refused
    typical = { value = 13.9, source = "assumed: ..." }              # value under another preset

Preset `literal` is what the paper prints. Any other preset is laid over it, or over the one that the table `presets` names;
an assumption is marked as one in its source, and a value fitted to a printed result is in a preset called `fitted`, never
in another. The table `geometry` holds values that shape paths.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError, UnknownNameError, UnsupportedError
from opticcl.ir import Fabric
from opticcl.ir.light import LITERAL, LightPath, Optics, OpticsTable, Value
from opticcl.optics.chain import Chain
from opticcl.optics.decibels import dbm_of_watts, splitting_loss_db
from opticcl.units import number_of

__all__ = ["chain_of", "check_channels", "light_path_of", "optics", "optics_table"]

_LENGTH_UNITS = {"km": 1e3, "m": 1.0, "cm": 1e-2}
_WATTS = {"W": 1.0, "mW": 1e-3}
_NEVER_NEGATIVE = ("loss", "gain", "noise", "length", "penalty", "receiver", "transmitter")
_LARGEST = 1e6  # of any value


def optics_table(name: str, table: Mapping[str, Any], where: str) -> OpticsTable:
    """The table of a fabric's optics.

    Args:
        name: of the fabric.
        table: as the TOML file has it: entries and tables of entries, `geometry`, `presets`.
        where: file that holds it, for messages.
    """
    entries: dict[str, Mapping[str, Any]] = {}
    for key, entry in table.items():
        if key not in ("geometry", "presets"):
            entries |= {key: entry} if "unit" in entry else {f"{key}.{field}": value for field, value in entry.items()}
    geometry = {key: entry["value"] for key, entry in table.get("geometry", {}).items()}
    sources = {f"{key}.source": entry["source"] for key, entry in table.get("geometry", {}).items()}
    return OpticsTable(name, entries, geometry | sources, table.get("presets", {}), where)


def light_path_of(fabric: Fabric) -> LightPath:
    """The light path of a fabric.

    Raises: UnsupportedError: it has none from end to end.
    """
    if fabric.light_path is None:
        raise UnsupportedError(f"{fabric.name}: no light path: {_why_no_light(fabric)}")
    return fabric.light_path


def _why_no_light(fabric: Fabric) -> str:
    """Why the light of a fabric without a light path is unknown, and what to do."""
    if not fabric.is_packet_switched:
        system = type(fabric.machine).__name__
        return f"class {system} does not define `light_path`, the elements that light passes; see docs/extending/plugins.md"
    return (
        "packets are forwarded electrically, so no light goes from end to end; opticcl list shows the optical fabrics"
    )


def check_channels(fabric: Fabric) -> None:
    """Refuse more wavelengths than the sources of an optical fabric can make, where a paper gives the number.

    Raises: ParameterError: more. UnsupportedError: no light path.
    """
    geometry = light_path_of(fabric).table.geometry
    most = geometry.get("channels")
    if most and fabric.num_wavelengths > most:
        raise ParameterError(
            f"{fabric.name}: wavelengths={fabric.num_wavelengths} lie outside the band: its sources have "
            f"{most} channels ({geometry['channels.source'].partition(':')[0]}); try {most} or fewer"
        )


def optics(table: OpticsTable, preset: str = LITERAL, settings: Mapping[str, Any] | None = None) -> Optics:
    """The values of a table under a preset, with some of them set.

    Args:
        table: of the fabric: `fabric.light_path.table`, or `opticcl.fabrics.light_table("oddl")`.
        preset: literal, or another that the table has.
        settings: values by name, numbers in the unit of the table or texts such as "0.3 dB".
    Raises: UnknownNameError: no such preset. ParameterError: no such value, or one that it cannot have.
    """
    key = preset.strip().lower().replace("-", "_")
    if key not in table.presets:
        raise UnknownNameError(
            f"{table.name}: unknown preset {preset!r} of its optics; known: {', '.join(table.presets)}"
        )
    layers = table.layers_of(key)
    values = {}
    for name, entry in table.entries.items():
        chosen = next((entry[layer] for layer in layers if layer in entry), entry)
        values[name] = Value(chosen.get("value"), entry["unit"], chosen["source"])
    made = Optics(table, key, values)
    for name, given in (settings or {}).items():
        made.check_known(name)
        values[name] = Value(_checked(table.name, values, name, given), values[name].unit, "given")
    return made


def chain_of(path: LightPath, values: Optics, passed: npt.NDArray[np.bool_] | None = None) -> Chain:
    """The path with its values.

    Args:
        path: elements in order.
        values: of these elements.
        passed: which of the elements any light passes, (elements,); the others need no values. None: those of the extremes.
    Raises: ParameterError: values are missing, or a passive element is to amplify.
    """
    present = np.any(path.extremes > 0, axis=0) if passed is None else passed
    values.needed(_names_needed(path, values, present))
    loss, once, gain, most = (np.zeros(len(path.elements)) for _ in range(4))
    most += np.inf
    for k in np.flatnonzero(present):
        element = path.elements[k]
        loss[k] = values.loss_db(element.kind)
        once[k] = splitting_loss_db(element.ways)
        gain[k] = values.get(f"{element.kind}.gain") or 0.0
        if gain[k] and not element.amplifies:
            raise ParameterError(
                f"{values.name}: {element.kind} is passive and has no gain; a loss is {element.kind}.loss"
            )
        limit = values.get(f"{element.kind}.output")
        most[k] = np.inf if limit is None else limit
    launch, sensitivity = values.needed(["launch", "sensitivity"])
    floor = values.needed(["floor"])[0] if "floor" in values.values else -np.inf
    penalty = values.needed(["penalty"])[0] if "penalty" in values.values else 0.0
    return Chain(launch, loss, once, gain, most, sensitivity, floor, penalty)


def _names_needed(path: LightPath, values: Optics, present: npt.NDArray[np.bool_]) -> list[str]:
    """Names of the values that a chain of these elements must have, in the order of the path."""
    names = ["launch"]
    for element, passed in zip(path.elements, present.tolist(), strict=True):
        if passed:
            names.append(f"{element.kind}.loss")
            names += [f"{element.kind}.gain"] * element.amplifies
            names += [f"{element.kind}.length"] * ("/" in values.unit(f"{element.kind}.loss"))
    return names + [name for name in ("penalty", "floor") if name in values.values] + ["sensitivity"]


def _checked(fabric_name: str, values: Mapping[str, Value], name: str, given: Any) -> float:
    """A value in the unit of the file.

    Raises: ParameterError: no number, another unit, a negative one where there is none, or absurdly large.
    """
    unit = values[name].unit
    match = re.fullmatch(
        r"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*+([A-Za-z/]*)\s*", str(given)
    )
    try:
        value = number_of(match[1]) if match and not isinstance(given, bool) else math.inf
    except ValueError:  # it vanishes
        value = math.inf
    if match is None or not math.isfinite(value):
        raise ParameterError(f"{fabric_name}: {name}={given!r} is not a number; write {name}=1{unit}")
    written = match[2]
    if unit == "dBm" and written in _WATTS and value > 0:
        value = float(dbm_of_watts(value * _WATTS[written]))
    elif written and written != unit:
        factor = _factor(written, unit)
        if factor is None:
            raise ParameterError(f"{fabric_name}: {name}={given!r} is not in {unit}; write {name}=1{unit}")
        value *= factor
    if value < 0 and name.rpartition(".")[2] in _NEVER_NEGATIVE:
        raise ParameterError(f"{fabric_name}: {name}={value:g} {unit} is negative; it is 0 or more")
    if abs(value) > _LARGEST:
        raise ParameterError(
            f"{fabric_name}: {name}={value:g} {unit} is beyond {_LARGEST:,.0f} {unit}; check the number"
        )
    return value


def _factor(written: str, unit: str) -> float | None:
    """From one unit of length, or of loss over length, to another; None if they are not of a kind."""
    if written in _LENGTH_UNITS and unit in _LENGTH_UNITS:
        return _LENGTH_UNITS[written] / _LENGTH_UNITS[unit]
    over, length = (u.removeprefix("dB/") for u in (written, unit))
    if written.startswith("dB/") and unit.startswith("dB/") and over in _LENGTH_UNITS:
        return _LENGTH_UNITS[length] / _LENGTH_UNITS[over]
    return None
