"""What one signal is, by exact fractions of the bytes of a transfer and one lane at a time."""

from fractions import Fraction


def signals(circuits, transfers, rates=None):
    """Of each circuit the set of its signals: sender, port, wavelength, chunks, first and last byte; idle ones have no chunks.

    Args:
        circuits: of a round.
        transfers: of the step.
        rates: of the wavelengths of each circuit, of their full rate; None: 1.
    """
    lanes = []
    for i in range(len(circuits)):
        for nth in range(int(circuits.wavelength_n[i])):
            wavelength = int(circuits.wavelength_lo[i]) + nth * circuits.wavelength_step
            rate = Fraction(1) if rates is None else Fraction(rates[i])
            lanes.append((int(circuits.transfer[i]), int(circuits.port[i]), wavelength, i, rate))
    found = [set() for _ in range(len(circuits))]
    for transfer in {lane[0] for lane in lanes}:
        mine = sorted(lane for lane in lanes if lane[0] == transfer)
        whole, done = sum(lane[4] for lane in mine), Fraction(0)
        for _, port, wavelength, i, rate in mine:
            what = None
            if 0 <= transfer < len(transfers):
                step = 1 if transfers.chunk_step is None else int(transfers.chunk_step[transfer])
                lo, n = int(transfers.chunk_lo[transfer]), int(transfers.chunk_n[transfer])
                parts = 1 if transfers.parts is None else int(transfers.parts[transfer])
                chunks = tuple(lo + k * step for k in range(n))
                what = (chunks, parts, done / whole, (done + rate) / whole)
            found[i].add((int(circuits.src[i]), port, wavelength, what))
            done += rate
    return [frozenset(one) for one in found]
