"""RAMP against fat tree, torus and TopoOpt: speed-ups of sections 8.2 to 8.4 through the estimator of section 7.4.

The text leaves open what `opticcl.evaluate.estimator.Setting` names. Preset p is nearest to most printed numbers, of 576
sets that were tried: a fit, no prediction. Other sets are named in the rows that use them.

RAMP-9-1.16-10000 (the conclusion) repeats figure 21.
"""

from __future__ import annotations

from opticcl.evaluate.estimator import COLLECTIVES, RIVALS, Setting, estimate, fastest, matched, setting, speed_up
from opticcl.papers import claim

MB, GB = 1e6, 1e9
P = setting("p")
WIDE = setting("p", memory="2.039TB/s", bytes_factor=2, slot_efficiency=0.95)  # 80 GB card, sums in fp32, whole slots
HALF = setting("p", torus_share=0.5)  # rings both ways round
SLOW, FAST = 0.2e12, 12.8e12  # figure 19 [bit/s]
SPREAD = tuple(SLOW * 2**k for k in range(7))


@claim("ramp", "RAMP-8-rs7.6")
def reduce_scatter() -> float:
    return speed_up("reduce_scatter", GB, P).times


@claim("ramp", "RAMP-8-rs7.6l")
def reduce_scatter_literal() -> float:
    return speed_up("reduce_scatter", GB, setting("literal")).times


@claim("ramp", "RAMP-8-rs7.6h")
def reduce_scatter_both_ways() -> float:
    return speed_up("reduce_scatter", GB, HALF).times


@claim("ramp", "RAMP-8-a2a171")
def all_to_all() -> float:
    return speed_up("all_to_all", GB, P).times


@claim("ramp", "RAMP-8-a2a171p")
def all_to_all_printed() -> float:
    return speed_up("all_to_all", GB, setting("p", peer_transceivers="printed")).times


@claim("ramp", "RAMP-8-a2a171b")
def all_to_all_best() -> float:
    return speed_up("all_to_all", GB, P, "best").times


@claim("ramp", "RAMP-8-a2a171l")
def all_to_all_literal() -> float:
    return speed_up("all_to_all", GB, setting("literal")).times


@claim("ramp", "RAMP-8-order")
def least_and_most() -> list[str]:
    times = {name: speed_up(name, GB, P).times for name in COLLECTIVES}
    return [min(times, key=times.__getitem__), max(times, key=times.__getitem__)]


@claim("ramp", "RAMP-8-ar7.3")
def all_reduce() -> float:
    return speed_up("all_reduce", 10 * GB, P).times


@claim("ramp", "RAMP-8-ar7.3h")
def all_reduce_both_ways() -> float:
    return speed_up("all_reduce", 10 * GB, HALF).times


@claim("ramp", "RAMP-8-ar7.3w")
def all_reduce_wide() -> float:
    return speed_up("all_reduce", 10 * GB, WIDE).times


def _transfer_share(made: Setting) -> float:
    """Head-to-tail time of RAMP's 10 GB all-reduce over itself and the sums [%]."""
    found = fastest("ramp", "all_reduce", 10 * GB, made)
    return 100 * found.h2t_s / (found.h2t_s + found.compute_s)


@claim("ramp", "RAMP-8-44-56")
def transfer_share() -> float:
    return _transfer_share(P)


@claim("ramp", "RAMP-8-44-56w")
def transfer_share_wide() -> float:
    return _transfer_share(WIDE)


@claim("ramp", "RAMP-8-2.8<5.3")
def sums_gain_less_than_rate() -> bool:
    ring = estimate("fat_tree", "hierarchical", "reduce_scatter", GB, P).compute_s
    gain = ring / fastest("ramp", "reduce_scatter", GB, P).compute_s
    return gain < P.ramp_rate / P.fast_rate


def _times(strategy: str, size: float, made: Setting) -> float:
    """All-reduce on the fat tree over RAMP's."""
    ramp = fastest("ramp", "all_reduce", size, made).total_s
    return estimate("fat_tree", strategy, "all_reduce", size, made).total_s / ramp


@claim("ramp", "RAMP-F20-range")
def all_reduce_least() -> float:
    return _times("hierarchical", 10 * GB, P)


@claim("ramp", "RAMP-F20-most")
def all_reduce_most() -> float:
    return _times("ring", MB, P)


@claim("ramp", "RAMP-F20-10MB")
def all_reduce_of_10_mb() -> float:
    return _times("ring", 10 * MB, P)


MATCHED = matched(P, P.fast_rate)  # section 8.4: 2.4 Tb/s, no oversubscription


@claim("ramp", "RAMP-F21-ring")
def ring_least() -> float:
    return _times("ring", 10 * GB, MATCHED)


@claim("ramp", "RAMP-F21-ring5")
def ring_least_over_five_switches() -> float:
    return _times("ring", 10 * GB, matched(setting("p", switches="1x3x5x5"), P.fast_rate))


@claim("ramp", "RAMP-F21-ringmost")
def ring_most() -> float:
    return _times("ring", 10 * MB, MATCHED)


@claim("ramp", "RAMP-F21-hier")
def hierarchical_least() -> float:
    return _times("hierarchical", 10 * GB, MATCHED)


@claim("ramp", "RAMP-F21-hiermost")
def hierarchical_most() -> float:
    return _times("hierarchical", MB, MATCHED)


@claim("ramp", "RAMP-8-16pct")
def gain_in_data_limited_region() -> float:
    return 100 * (_times("hierarchical", 10 * GB, MATCHED) - 1)


@claim("ramp", "RAMP-8-16pctw")
def gain_in_data_limited_region_wide() -> float:
    return 100 * (_times("hierarchical", 10 * GB, matched(WIDE, P.fast_rate)) - 1)


@claim("ramp", "RAMP-F21-flat")
def ramp_is_flat() -> bool:
    sizes = (32, 64, 256, 1024, 4096, 32768, 65536)
    found = [
        fastest("ramp", "reduce_scatter", GB, matched(setting("p", num_nodes=n), P.fast_rate)).h2t_s for n in sizes
    ]
    return max(found) < 1.05 * min(found)


@claim("ramp", "RAMP-F22")
def latency_is_negligible() -> list[bool]:
    found = [
        fastest("ramp", "all_reduce", 10 * GB, MATCHED),
        *(estimate("fat_tree", s, "all_reduce", 10 * GB, MATCHED) for s in ("hierarchical", "ring")),
    ]
    return [e.h2t_s > 10 * e.h2h_s for e in found]


@claim("ramp", "RAMP-F19-a2a")
def all_to_all_matched_least() -> float:
    return speed_up("all_to_all", GB, matched(P, SLOW), systems=["fat_tree"]).times


@claim("ramp", "RAMP-F19-a2amost")
def all_to_all_matched_most() -> float:
    return speed_up("all_to_all", GB, matched(setting("p", forwarded=1), FAST), systems=["topoopt"]).times


@claim("ramp", "RAMP-F19-a2ahalf")
def all_to_all_matched_most_half() -> float:
    return speed_up("all_to_all", GB, matched(P, FAST), systems=["topoopt"]).times


@claim("ramp", "RAMP-F19-range")
def matched_least() -> float:
    return min(speed_up(name, GB, matched(P, rate)).times for name in COLLECTIVES for rate in (SLOW, FAST))


def _rise(collective: str, system: str) -> float:
    """Speed-up against a system at 12.8 Tb/s over that at 0.2 Tb/s."""
    fast, slow = (speed_up(collective, GB, matched(P, rate), systems=[system]).times for rate in (FAST, SLOW))
    return fast / slow


@claim("ramp", "RAMP-F19-27x")
def rise_against_topoopt() -> float:
    return _rise("all_gather", "topoopt")


@claim("ramp", "RAMP-F19-32x")
def rise_against_fat_tree() -> float:
    return _rise("broadcast", "fat_tree")


@claim("ramp", "RAMP-F19-bestFT")
def fat_tree_is_the_best_rival() -> bool:
    others = [name for name in COLLECTIVES if name != "broadcast"]
    return all(
        min(RIVALS, key=lambda s: fastest(s, name, GB, made).total_s) == "fat_tree"
        for made in (matched(P, rate) for rate in SPREAD)
        for name in others
    )
