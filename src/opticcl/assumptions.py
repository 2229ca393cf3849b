"""Assumptions about time that no fabric determines, as named sets: `common`, `published`, and one a paper.

Latency is what each paper prints (`latency=published`), or the sum of its parts by one law for all fabrics (`latency=parts`):

    endpoint + message_gap x messages + transceiver x receivers + fibre x metres + waveguide x metres + hop x what forwards

What a signal passes follows from the fabric and the floor plan (`opticcl.ir.floor_plan`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Annotated, Any, Literal

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.floor_plan import FloorPlan
from opticcl.registry import as_text, canonical, convert_arguments, known_name, nearest
from opticcl.units import ByteRate, Seconds, format_quantity

__all__ = [
    "DEFAULT_SET",
    "KEYS",
    "LATENCY_KEYS",
    "SETS",
    "AssumedValue",
    "Assumptions",
    "assumptions",
    "meaning_of",
    "set_of",
    "value_text",
    "values",
]

_TABLE = read_toml("opticcl", "assumptions.toml")
_VALUE: Mapping[str, Any] = {name: entry["value"] for name, entry in _TABLE["value"].items()}

SETS: tuple[str, ...] = tuple(_TABLE["set"])
"""Names of the sets."""

DEFAULT_SET = "common"
"""Set of every verb that computes a time."""

LATENCY_KEYS = ("endpoint", "transceiver", "message_gap", "fibre", "waveguide", "hop", "server_hop")
"""Parts of the latency under latency=parts."""

SecondsPerMetre = Annotated[float, "s/m"]

_FLOOR = FloorPlan(**{name: entry["value"] for name, entry in _TABLE["floor"].items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """Assumptions that a simulated time rests on; the defaults are those of `common`.

    Args:
        latency: parts: the sum of the parts below; published: what the fabric's paper prints, in place of those.
        endpoint: of a dependent step: software, memory, transmitter; also memory, nic or gpu_nic [s].
        transceiver: of the receiver of a link outside servers, for error correction [s].
        message_gap: of each message of a node: all that it sends to another in a step with one operation [s].
        fibre: of a metre of fibre or cable [s/m].
        waveguide: of a metre of waveguide [s/m].
        hop: of a switch, or a node that forwards packets [s].
        server_hop: of a switch within a server [s].
        reconfiguration_charge: on_change charges a reconfiguration for a round whose circuits are not all standing
            already; every_step charges it for every round, as most papers do.
        initial: cold charges the first setting of circuits, warm assumes that it is done (on_change only); with a
            configuration of the machine (`Plan.configuration`), circuits stand at the start that it holds all devices of.
        prepare: early: a device may be set while data is awaited; none: only once the data of its circuit is ready.
        rounds: apart: a round of a step starts once the previous one has arrived; in_line: a transmitter is free once its
            last bit has left, so rounds between which nothing is set follow each other and wait for the latency once.
        compute: fused sums all arrivals of a chunk in one pass over memory, (arrivals + 2) bytes moved for each byte of
            the chunk; chain adds one arrival after the other, 3 bytes each; none charges nothing.
        memory_bytes_per_s: memory bandwidth of the device that computes the sums; also host [byte/s].
        control: charged counts the exchange of control messages; none does not.
        control_charge: every_step: before every round; on_change: before rounds whose circuits are not all standing.
        control_order: before_setting: circuits are set after the exchange; beside_setting: both happen together.
        receive_buffers: shared: data arrives in the place of the chunk; separate: it may wait in a buffer of its own.
        floor: distances.
        name: of the set, for tables; "changed" follows it where values differ from it.
    Raises: ParameterError: the memory bandwidth is not positive, or a part is negative.
    Source: RAMP section 7.4 (roofline, memory bound); assumptions.toml for all values.
    """

    latency: Literal["parts", "published"] = "parts"
    endpoint: Seconds = _VALUE["endpoint"]
    transceiver: Seconds = _VALUE["transceiver"]
    message_gap: Seconds = _VALUE["message_gap"]
    fibre: SecondsPerMetre = _VALUE["fibre"]
    waveguide: SecondsPerMetre = _VALUE["waveguide"]
    hop: Seconds = _VALUE["hop"]
    server_hop: Seconds = _VALUE["server_hop"]
    reconfiguration_charge: Literal["on_change", "every_step"] = "on_change"
    initial: Literal["cold", "warm"] | DeviceSettings = "cold"
    prepare: Literal["early", "none"] = "early"
    rounds: Literal["in_line", "apart"] = "in_line"
    compute: Literal["fused", "chain", "none"] = "fused"
    memory_bytes_per_s: ByteRate = _VALUE["memory_bytes_per_s"]
    control: Literal["charged", "none"] = "charged"
    control_charge: Literal["on_change", "every_step"] = "on_change"
    control_order: Literal["before_setting", "beside_setting"] = "before_setting"
    receive_buffers: Literal["shared", "separate"] = "shared"
    floor: FloorPlan = _FLOOR
    name: str = field(default="common", compare=False)

    def __post_init__(self) -> None:
        if not self.memory_bytes_per_s > 0:
            raise ParameterError(
                f"assumptions: memory_bytes_per_s={self.memory_bytes_per_s:g} is not positive; try 1.5TB/s"
            )
        for key in LATENCY_KEYS:
            if not getattr(self, key) >= 0:
                raise ParameterError(f"assumptions: {key}={getattr(self, key):g} is negative; try 0")

    def record(self) -> dict[str, Any]:
        """Values by name, for JSON: the name of the set and all values that have an effect."""
        without = LATENCY_KEYS if self.latency == "published" else ()
        known = {key: getattr(self, key) for key in KEYS if key not in without}
        return {"name": self.name, **known, "initial": str(self.initial)}

    @property
    def configuration(self) -> DeviceSettings | None:
        """What stands at the start, None if it is cold or warm."""
        return self.initial if isinstance(self.initial, DeviceSettings) else None


KEYS: tuple[str, ...] = tuple(f.name for f in fields(Assumptions) if f.name not in ("floor", "name"))
"""Names of the assumptions that a caller may change."""

_MEANINGS = {
    "latency=parts": "Latency is the sum of its parts, by one law for all fabrics.",
    "latency=published": "Latency is what the paper of each fabric prints.",
    "reconfiguration_charge=on_change": "A reconfiguration is charged where a round has circuits that were not set before.",
    "reconfiguration_charge=every_step": "A reconfiguration is charged on every round, whether circuits change or not.",
    "initial=cold": "The first setting of the circuits is charged.",
    "initial=warm": "The first circuits are set before the time begins.",
    "initial=given": "What stands at the start is given.",
    "prepare=early": "Devices may be set while data is awaited (device engine).",
    "prepare=none": "Devices are set once the data of their circuits is ready.",
    "rounds=in_line": "Rounds of a step between which nothing is set wait for the latency once.",
    "rounds=apart": "A round starts once the previous one has arrived.",
    "compute=fused": "All arrivals of a chunk are summed in one pass over memory.",
    "compute=chain": "Arrivals are summed one after the other.",
    "compute=none": "Sums take no time.",
    "memory_bytes_per_s": "Memory bandwidth of the device that computes the sums.",
    "control=charged": "The fabric's control messages are counted.",
    "control=none": "Control messages are not counted.",
    "control_charge=on_change": "Control messages are exchanged where circuits change.",
    "control_charge=every_step": "Control messages are exchanged before every round.",
    "control_order=before_setting": "Circuits are set after the control messages.",
    "control_order=beside_setting": "Control messages and settings happen together.",
    "receive_buffers=shared": "Data arrives in the place of its chunk.",
    "receive_buffers=separate": "Data may wait in a buffer of its own.",
}


@dataclass(frozen=True, slots=True)
class AssumedValue:
    """A number of the law of latency or of the floor plan.

    Args:
        key: field of `Assumptions` or `FloorPlan`.
        value: in `common`.
        unit: of the value; "" for a count.
        about: what it is.
        source: where it is from.
        named: other values that have a name.
        named_source: where those are from.
    """

    key: str
    value: float
    unit: str
    about: str
    source: str
    named: Mapping[str, float] = field(default_factory=dict)
    named_source: str = ""


def values(table: Literal["value", "floor"] = "value") -> tuple[AssumedValue, ...]:
    """All values with their sources.

    >>> [value.key for value in values()][:2]
    ['endpoint', 'transceiver']

    Args: table: value: of the law; floor: of the floor plan.
    """
    return tuple(AssumedValue(key, **entry) for key, entry in _TABLE[table].items())


def set_of(name: str) -> dict[str, str]:
    """Keys of a named set with those that it is laid over, and `about` and `source` of the set itself.

    >>> set_of("sipac")["latency"], set_of("sipac")["compute"]
    ('published', 'none')

    Raises: UnknownNameError: no such set.
    """
    entry = dict(_TABLE["set"][known_name("assumptions", name, SETS)])
    base = entry.pop("base", None)
    return ({} if base is None else set_of(base)) | entry


def meaning_of(name: str, value: object) -> str:
    """What an assumption means, in one sentence; "" if it has none on file.

    >>> meaning_of("initial", "cold")
    'The first setting of the circuits is charged.'

    Args:
        name: field of `Assumptions`.
        value: of the field.
    """
    if name in LATENCY_KEYS:
        return f"Latency of {_TABLE['value'][name]['about']}."
    return _MEANINGS.get(f"{name}={value}") or _MEANINGS.get(name, "")


def value_text(name: str, value: object) -> str:
    """A value with its unit.

    >>> value_text("endpoint", 7e-7), value_text("initial", "cold")
    ('700 ns', 'cold')

    Args:
        name: field of `Assumptions`.
        value: of the field.
    """
    unit = _TABLE["value"].get(name, {}).get("unit")
    if unit is None or not isinstance(value, (int, float)):
        return str(value)
    return f"{1e9 * value:g} ns/m" if unit == "s/m" else format_quantity(float(value), unit)


@lru_cache(maxsize=32)
def _of_set(name: str) -> Assumptions:
    """A named set, made once, since it does not change."""
    keys = {key: value for key, value in set_of(name).items() if key in KEYS}
    return Assumptions(**{**convert_arguments(Assumptions, keys, "assumptions"), "name": canonical(name)})


def assumptions(given: str | Assumptions = DEFAULT_SET, **changed: Any) -> Assumptions:
    """A named set of assumptions, some of them changed.

    Args:
        given: common, published, ramp, sipac, wrht, oddl or lumorph; or assumptions to change.
        changed: fields of `Assumptions`; texts are converted.
    Raises: UnknownNameError: no such set. ParameterError: no such field or value, or a part of the latency where the
        latency is what papers print.

    >>> assumptions("wrht", compute="chain").reconfiguration_charge
    'every_step'
    >>> assumptions(assumptions("wrht"), initial="warm").compute
    'none'
    """
    if not isinstance(given, Assumptions):
        given = _of_set(as_text(given, "assumptions", DEFAULT_SET))
    if not changed:
        return given
    kept = {key: getattr(given, key) for key in KEYS}
    asked = {canonical(key): _named(canonical(key), value) for key, value in changed.items()}
    unknown = [key for key in asked if key not in KEYS]
    if unknown:
        raise ParameterError(f"assumptions: unknown assumption {unknown[0]!r}; {nearest(unknown[0], KEYS)}")
    if asked.get("latency", given.latency) == "published":
        for key in LATENCY_KEYS:
            if key in asked:
                raise ParameterError(
                    f"assumptions: {key}={asked[key]} has no effect with latency=published; try --assumptions common"
                )
    new = convert_arguments(Assumptions, kept | asked, "assumptions")
    name = (
        given.name if all(new[key] == kept[key] for key in KEYS) else f"{given.name.removesuffix(', changed')}, changed"
    )
    return replace(given, **{key: new[key] for key in KEYS}, name=name)


def _named(key: str, given: Any) -> Any:
    """The value that a name stands for, where the assumption has names; anything else as it is.

    Raises: ParameterError: a word that is no name.
    """
    entry = _TABLE["value"].get(key, {})
    named = entry.get("named")
    if named is None or not isinstance(given, str) or not canonical(given).isidentifier():
        return given
    if canonical(given) not in named:
        kind, middle = "time" if entry["unit"] == "s" else "rate", sorted(named.values())[len(named) // 2]
        value = value_text(key, middle).replace(" ", "")
        raise ParameterError(f"assumptions: {key}={given} is not a {kind} and none of {', '.join(named)}; try {value}")
    return named[canonical(given)]
