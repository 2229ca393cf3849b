"""Topologies of NCCL and RCCL in XML (NCCL_TOPO_DUMP_FILE, NCCL_TOPO_FILE): CPUs, PCI devices, links between GPUs.

GPUs are the devices with a <gpu>, in the order of their ranks; a template for NCCL_TOPO_FILE has none, and there the devices of
PCI class 0x03 and 0x12 are GPUs. An <nvlink> or <xgmi> leads one way to another GPU, which has one back; to an NVSwitch, which
is named as a target alone, it leads both ways. A dump of several hosts, whose NVLinks lead to the same switches, says the host
of each CPU, since addresses are those within a host. The rate of a PCI link follows from its speed and width by NCCL's table.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from math import nan

from opticcl.fabrics._datasheet import datasheet
from opticcl.fabrics.networks import register_network
from opticcl.fabrics.networks._elements import read_xml, root_is
from opticcl.fabrics.networks._servers import PCIE_LEFT_OUT, copied, joined, rate_of_nvlinks
from opticcl.fabrics.networks.file_graph import (
    NODE,
    FileFaultError,
    FileGraph,
    FileGraphBuilder,
    FileOptions,
    Nic,
    Way,
    whole,
)
from opticcl.units import counted
from opticcl.xml_elements import XmlElement

LINKS = ("nvlink", "xgmi")
BRIDGE, NVSWITCH, GPU_CLASSES, NIC_CLASS = "0x0604", "0x0680", ("0x03", "0x12"), "0x02"


def _sniff(text: str) -> bool:
    return root_is(text, "system") and re.search(r"<(cpu|pci)\b", text) is not None


@dataclass(slots=True)
class _Device:
    """A PCI device, or a CPU.

    Args:
        element: of the file.
        above: device that it hangs from, None for a CPU.
        below: devices that hang from it.
    """

    element: XmlElement
    above: _Device | None
    below: list[_Device] = field(default_factory=list)

    @property
    def pci_class(self) -> str:
        """Class of a PCI device, "" for a CPU."""
        return self.element.attributes.get("class", "").lower() if self.above is not None else ""

    @property
    def bus(self) -> str:
        """Address, in lower case."""
        return self.element.attributes.get("busid", "").lower()

    @property
    def host(self) -> str:
        """What distinguishes its host from others, "" where the file does not say it."""
        return [self, *self.chain()][-1].element.attributes.get("host_hash", "")

    @property
    def is_switch(self) -> bool:
        """Whether it is a PCI bridge or switch with devices below."""
        return self.pci_class.startswith(BRIDGE) and bool(self.below)

    def chain(self) -> list[_Device]:
        """What is above it, the nearest first; a CPU is the last."""
        return [] if self.above is None else [self.above, *self.above.chain()]

    def rate_bits_per_s(self, given: float | None) -> float:
        """Of the link up from it, by NCCL's table, or as the caller says [bit/s]."""
        lane, width = self.lane
        return given if given is not None else (lane or datasheet("network")["pcie_lane"]["8"]) * (width or 16)

    @property
    def lane(self) -> tuple[float, int]:
        """Rate of a lane of the link up from it, and its lanes; 0 where the file does not say it [bit/s, count]."""
        speed = re.match(r"\s*([0-9.]+)\s*GT/s", self.element.attributes.get("link_speed", ""))
        table = datasheet("network")["pcie_lane"]
        lane = table.get(f"{float(speed[1]):g}", 0.0) if speed and speed[1].count(".") < 2 else 0.0
        width = self.element.attributes.get("link_width", "")
        return float(lane), int(width) if re.fullmatch("[1-9][0-9]?", width) else 0


def _devices(element: XmlElement, above: _Device) -> list[_Device]:
    """The devices below one, in the order of the file."""
    devices = []
    for child in element.of("pci"):
        device = _Device(child, above)
        above.below.append(device)
        devices += [device, *_devices(child, device)]
    return devices


@register_network("nccl", "NCCL and RCCL topology XML", _sniff, servers=True)
def read_nccl(text: str, options: FileOptions) -> FileGraph:
    """The graph of a server, or of copies of it.

    Raises: FileFaultError: no such file, no GPUs, or a rate that is unknown.
    """
    root, made = read_xml(text, options), FileGraphBuilder(options)
    cpus = [_Device(element, None) for element in root.of("cpu")]
    devices = [device for cpu in cpus for device in _devices(cpu.element, cpu)]
    if not devices:
        raise FileFaultError(root.line, "has no <cpu> with <pci> devices")
    gpus, dump = _gpus(devices)
    number = {(device.host, device.bus): made.vertex(name, NODE, device.element.line) for name, device in gpus}
    if len(number) < len(gpus):
        raise FileFaultError(0, "two GPUs have one busid")
    _add_links(made, [device for _, device in gpus], number, dump=dump)
    sets = joined(len(made.kinds), ((one, other) for one, other, *_ in made.edges))
    hub: dict[int, int] = {}
    apart = len({sets[gpu] for gpu in number.values()}) > 1
    if apart if options.with_pcie is None else options.with_pcie:
        if len({cpu.host for cpu in cpus}) > 1:
            raise FileFaultError(
                0, f"has several hosts{' whose NVLinks do not join all GPUs' * apart}; PCIe of one host is read"
            )
        hub = _add_pcie(made, cpus, devices, {id(device): number[device.host, device.bus] for _, device in gpus})
    else:
        made.notes.append(PCIE_LEFT_OUT)
    made.pcie_bits_per_s = min(device.rate_bits_per_s(options.pcie) for _, device in gpus)
    made.nics += [nic for device in devices if _is_nic(device) for nic in _nics(device, [one for _, one in gpus], hub)]
    return made.graph() if options.copies == 1 else copied(made.graph(), options)


def _gpus(devices: list[_Device]) -> tuple[list[tuple[str, _Device]], bool]:
    """Names and devices of the GPUs, and whether the file is a dump, which marks them.

    Raises: FileFaultError: there is none, or ranks are given twice.
    """
    marked = [device for device in devices if device.element.of("gpu")]
    gpu_devices = marked or [device for device in devices if device.pci_class.startswith(GPU_CLASSES)]
    if not gpu_devices:
        raise FileFaultError(0, "has no GPUs: no <gpu>, and no device of PCI class 0x03 or 0x12")
    if shared := next((device for device in marked if len(device.element.of("gpu")) > 1), None):
        count = len(shared.element.of("gpu"))
        raise FileFaultError(
            shared.element.line,
            f"{count} ranks share the GPU {shared.bus} and its links; a file with a rank a GPU is read",
        )
    ranks = [device.element.of("gpu")[0].attributes.get("rank") for device in marked]
    if ranks and None not in ranks:
        order = [whole(rank, "rank", device.element.line) for rank, device in zip(ranks, marked, strict=True)]
        if len(set(order)) < len(order):
            raise FileFaultError(0, "two GPUs have one rank")
        return [
            (f"GPU{rank}", device) for rank, device in sorted(zip(order, marked, strict=True), key=lambda p: p[0])
        ], True
    return [(f"GPU{place}", device) for place, device in enumerate(gpu_devices)], bool(marked)


def _add_links(made: FileGraphBuilder, gpus: list[_Device], number: dict[tuple[str, str], int], *, dump: bool) -> None:
    """Links between GPUs and to NVSwitches.

    Args:
        made: collects them.
        gpus: of the file.
        number: vertex of each GPU, by host and address.
        dump: whether the file marks GPUs.
    """
    options = made.options
    links = [
        (device, link) for device in gpus for gpu in device.element.of("gpu") for tag in LINKS for link in gpu.of(tag)
    ]
    if not links:
        if options.nvlink is not None:
            rate = options.nvlink * rate_of_nvlinks(options, made, options.nvlink)
            switch = made.vertex("NVSwitch", "NVSwitch")
            for gpu in number.values():
                made.edge(gpu, switch, rate, way=Way.BOTH)
            made.notes.append(
                f"{options.nvlink} links of each GPU to NVSwitches, which are one vertex, as nvlink= says."
            )
        elif not dump and not options.with_pcie:
            raise FileFaultError(
                0,
                "is a template, which holds no links between GPUs: give nvlink= links of each to NVSwitches, or with_pcie=yes",
            )
        return
    counts = [whole(link.attributes.get("count", "1"), "count", link.line) for _, link in links]
    at_gpu = Counter[int]()
    for (device, _), count in zip(links, counts, strict=True):
        at_gpu[number[device.host, device.bus]] += count
    rate, lost = rate_of_nvlinks(options, made, max(at_gpu.values()), _generation_of(gpus)), 0
    for (device, link), count in zip(links, counts, strict=True):
        target, source, line = link.attributes.get("target", "").lower(), number[device.host, device.bus], link.line
        if target == device.bus:
            raise FileFaultError(
                line, f"a link of {device.bus} to itself, as some virtual machines show; the file is not the machine's"
            )
        if (end := number.get((device.host, target))) is not None:
            made.edge(source, end, count * rate, way=Way.ONE, line=line)
        elif link.attributes.get("tclass", "").lower().startswith(NVSWITCH):
            name = f"NVSwitch {target}"
            switch = made.number[name] if name in made.number else made.vertex(name, "NVSwitch", line)
            made.edge(source, switch, count * rate, way=Way.BOTH, line=line)
        else:
            lost += count
    if lost:
        made.notes.append(f"{lost} links lead to devices that the file does not have and are left out.")


def _generation_of(gpus: list[_Device]) -> str | None:
    """Name of the GPUs in the table, by their compute capability; None where it is not there."""
    capabilities = {
        gpu.attributes.get("sm", "") if "gcn" not in gpu.attributes else "" for d in gpus for gpu in d.element.of("gpu")
    }
    table = datasheet("network")["gpu"]
    names = [name for name, one in table.items() if "sm" in one and capabilities == {str(one["sm"])}]
    return names[0] if names else None


def _add_pcie(
    made: FileGraphBuilder, cpus: list[_Device], devices: list[_Device], gpus: dict[int, int]
) -> dict[int, int]:
    """PCI switches with GPUs or network cards below, CPUs, and the links between all of them.

    Args:
        made: collects them.
        cpus, devices: of the file.
        gpus: vertex of each GPU, by the id of its device.
    Returns: vertex of each device, by its id.
    """
    given, vertex = made.options.pcie, dict(gpus)
    used = {id(one) for device in devices if id(device) in gpus or _is_nic(device) for one in device.chain()}
    hosts = [cpu for cpu in cpus if id(cpu) in used]
    for place, cpu in enumerate(hosts):
        vertex[id(cpu)] = made.vertex(f"CPU{cpu.element.attributes.get('numaid', place)}", "CPU", cpu.element.line)
    for device in devices:
        if id(device) in used and id(device) not in vertex:
            name = f"PCI switch {device.bus}"  # which some machines show of several
            taken = sum(one.startswith(name) for one in made.number)
            vertex[id(device)] = made.vertex(
                f"{name} ({taken + 1})" if taken else name, "PCI switch", device.element.line
            )
    for device in devices:
        if id(device) in vertex and device.above is not None:
            rate = device.rate_bits_per_s(given)
            made.edge(vertex[id(device)], vertex[id(device.above)], rate, way=Way.BOTH, line=device.element.line)
    unsaid = sum(0 in one.lane for one in devices if id(one) in vertex)
    if unsaid and given is None:
        made.notes.append(
            f"Without speed or width in the file: {counted(unsaid, 'PCI link')}, read as NCCL does, 8 GT/s and 16 lanes."
        )
    between = _between_cpus(made, hosts) if len(hosts) > 1 else nan
    for one, other in combinations(hosts, 2):
        made.edge(vertex[id(one)], vertex[id(other)], between, way=Way.BOTH)
    made.notes.append(
        "PCIe is part of the network" + (f", with {between / 8e9:g} GB/s between two CPUs." if len(hosts) > 1 else ".")
    )
    return vertex


def _between_cpus(made: FileGraphBuilder, cpus: list[_Device]) -> float:
    """Rate between two CPUs, by NCCL's table for their vendor and model, or as the caller says [bit/s].

    Raises: FileFaultError: the table has none.
    """
    if made.options.sys is not None:
        return made.options.sys
    table = datasheet("network")["between_cpus"]
    vendor, model = (cpus[0].element.attributes.get(name, "") for name in ("vendor", "modelid"))
    old = vendor == "GenuineIntel" and re.fullmatch("[0-9]{1,6}", model) and int(model) < table["skylake_model"]
    rate = table.get(f"{vendor}_old" if old else vendor)
    if rate is None:
        raise FileFaultError(
            cpus[0].element.line, f"no rate between CPUs of vendor {vendor[:40]!r} is known; give sys=, such as 10GB/s"
        )
    return float(rate)


def _is_nic(device: _Device) -> bool:
    return bool(device.element.of("nic")) or device.pci_class.startswith(NIC_CLASS)


def _nics(device: _Device, gpus: list[_Device], hub: dict[int, int]) -> list[Nic]:
    """The ports of a network card, each with the GPUs that are nearest."""
    ports = [net.attributes for nic in device.element.of("nic") for net in nic.of("net")] or [{}]
    above = device.chain()
    far = []
    for gpu in gpus:
        chain = [id(one) for one in gpu.chain()]
        common = next((k for k, one in enumerate(above) if id(one) in chain), len(above))
        far.append((common, common < len(above) and above[common].is_switch))
    near = tuple(gpu for gpu, one in enumerate(far) if one[0] == min(far)[0])
    speeds = [port.get("speed", "") for port in ports]
    rates = [float(speed) * 1e6 if re.fullmatch("[1-9][0-9]{0,12}", speed) else nan for speed in speeds]
    at = hub.get(id(device.above), -1) if hub else -1
    names = [port.get("name", device.bus) for port in ports]
    return [Nic(name, near, far[near[0]][1], rate, at) for name, rate in zip(names, rates, strict=True)]
