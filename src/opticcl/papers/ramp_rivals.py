"""RAMP against fat tree, torus and TopoOpt: speed-ups of sections 8.2 to 8.4 through the estimator of section 7.4.

The text leaves open what `opticcl.papers.ramp_estimator.Setting` names. Preset p is nearest to most printed numbers of the sets
that were tried: a fit, no prediction. Other sets are named in the rows that use them. A candidate is a set with which one
printed number is reproduced and another no longer is; its rows have both effects in the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from opticcl.papers import Found, claim, found
from opticcl.papers.ramp_estimator import (
    COLLECTIVES,
    RIVALS,
    Estimate,
    Setting,
    estimate,
    fastest,
    matched,
    setting,
    speed_up,
)

MB, GB = 1e6, 1e9
P = setting("p")
WIDE = setting("p", memory="2.039TB/s", bytes_factor=2, slot_efficiency=0.95)  # 80 GB card, sums in fp32, whole slots
HALF = setting("p", torus_share=0.5)  # rings both ways round
DOUBLED = setting("p", bytes_factor=2)  # sums in fp32 on the 40 GB card
SLOTS = setting("p", slot_efficiency=0.95)  # the printed 950 of 1000 bytes
ONCE = setting("once")  # a candidate: section 7.5's delays once each
LITERAL = setting("literal")
MATCHED = matched(P, P.fast_rate)  # section 8.4: 2.4 Tb/s, no oversubscription
SLOW, FAST = 0.2e12, 12.8e12  # figure 19 [bit/s]
SPREAD = tuple(SLOW * 2**k for k in range(7))


def _open_sets() -> Iterator[Setting]:
    """Set p with every combination of values of what the text leaves open about memory, slots, transceivers and torus."""
    choices = {
        "memory": ("1.555TB/s", "2.039TB/s"),
        "bytes_factor": (1, 2),
        "slot_efficiency": (1, 0.95),
        "peer_transceivers": ("all", "printed", "one"),
        "torus_share": (0.25, 0.5, 1),
    }
    return (setting("p", **dict(zip(choices, values, strict=True))) for values in product(*choices.values()))


@claim("ramp", "RAMP-8-rs7.6")
def reduce_scatter() -> Found:
    over_all = [speed_up("reduce_scatter", GB, made).times for made in _open_sets()]
    ours = speed_up("reduce_scatter", GB, P).times
    return found(ours, least=min(over_all), most=max(over_all), sets=len(over_all))


@claim("ramp", "RAMP-8-rs7.6s")
def reduce_scatter_in_slots() -> Found:
    all_reduce_times, without = (speed_up("all_reduce", 10 * GB, made).times for made in (SLOTS, P))
    return found(speed_up("reduce_scatter", GB, SLOTS).times, all_reduce=all_reduce_times, without=without)


@claim("ramp", "RAMP-8-rs7.6l", "reduce_scatter", GB, LITERAL)
@claim("ramp", "RAMP-8-rs7.6h", "reduce_scatter", GB, HALF)
@claim("ramp", "RAMP-8-a2a171", "all_to_all", GB, P)
@claim("ramp", "RAMP-8-a2a171p", "all_to_all", GB, setting("p", peer_transceivers="printed"))
@claim("ramp", "RAMP-8-a2a171s", "all_to_all", GB, SLOTS)
@claim("ramp", "RAMP-8-a2a171l", "all_to_all", GB, LITERAL)
@claim("ramp", "RAMP-8-ar7.3h", "all_reduce", 10 * GB, HALF)
@claim("ramp", "RAMP-F19-a2ahalf", "all_to_all", GB, matched(P, FAST), ["topoopt"])
def _times_faster(collective: str, size: float, made: Setting, systems: Sequence[str] = RIVALS) -> float:
    return speed_up(collective, size, made, systems=systems).times


@claim("ramp", "RAMP-8-a2a171b")
def all_to_all_best() -> Found:
    best, flat = speed_up("all_to_all", GB, P, "best"), estimate("fat_tree", "flat", "all_to_all", GB, P)
    return found(
        best.times,
        steps=flat.steps,
        step_us=flat.h2h_s / flat.steps * 1e6,
        flat_ms=flat.total_s * 1e3,
        best_ms=best.rival.total_s * 1e3,
    )


@claim("ramp", "RAMP-8-order")
def least_and_most() -> list[str]:
    times = {name: speed_up(name, GB, P).times for name in COLLECTIVES}
    return [min(times, key=times.__getitem__), max(times, key=times.__getitem__)]


@claim("ramp", "RAMP-8-ar7.3")
def all_reduce() -> Found:
    tree, torus = (speed_up("all_reduce", 10 * GB, P, systems=[name]).times for name in ("fat_tree", "torus"))
    return found(speed_up("all_reduce", 10 * GB, P).times, tree=tree, torus=torus)


@claim("ramp", "RAMP-8-ar7.3w")
def all_reduce_wide() -> Found:
    share = _transfer_share(_own(WIDE))
    return found(speed_up("all_reduce", 10 * GB, WIDE).times, data=share, sums=100 - share)


def _own(made: Setting) -> Estimate:
    """RAMP's all-reduce of 10 GB."""
    return fastest("ramp", "all_reduce", 10 * GB, made)


def _transfer_share(time: Estimate) -> float:
    """Head-to-tail time over itself and the sums [%]."""
    return 100 * time.h2t_s / (time.h2t_s + time.compute_s)


@claim("ramp", "RAMP-8-44-56")
def transfer_share() -> Found:
    own = _own(P)
    wide = _transfer_share(_own(setting("p", memory="2.039TB/s")))
    return found(_transfer_share(own), data_ms=own.h2t_s * 1e3, sums_ms=own.compute_s * 1e3, wide=wide)


@claim("ramp", "RAMP-8-44-56w")
def transfer_share_wide() -> Found:
    share = _transfer_share(_own(WIDE))
    return found(share, sums=100 - share)


@claim("ramp", "RAMP-8-44-56b")
def transfer_share_doubled() -> Found:
    smallest = speed_up("reduce_scatter", GB, DOUBLED).times
    return found(
        _transfer_share(_own(DOUBLED)), smallest=smallest, least=_all_reduce_over_ramp("hierarchical", 10 * GB, DOUBLED)
    )


@claim("ramp", "RAMP-8-2.8<5.3")
def sums_gain_less_than_rate() -> Found:
    ring = estimate("fat_tree", "hierarchical", "reduce_scatter", GB, P).compute_s
    gain, rates = ring / fastest("ramp", "reduce_scatter", GB, P).compute_s, P.ramp_rate / P.fast_rate
    return found(gain < rates, gain=gain, rates=rates)


@claim("ramp", "RAMP-F20-range", "hierarchical", 10 * GB, P)
@claim("ramp", "RAMP-F20-10MB", "ring", 10 * MB, P)
@claim("ramp", "RAMP-F21-hier", "hierarchical", 10 * GB, MATCHED)
def _all_reduce_over_ramp(strategy: str, size: float, made: Setting) -> float:
    """All-reduce on the fat tree over RAMP's."""
    ramp = fastest("ramp", "all_reduce", size, made).total_s
    return estimate("fat_tree", strategy, "all_reduce", size, made).total_s / ramp


@claim("ramp", "RAMP-F20-most", "ring", P, MB, 10 * MB)
@claim("ramp", "RAMP-F21-ringmost", "ring", MATCHED, 10 * MB, MB)
@claim("ramp", "RAMP-F21-hiermost", "hierarchical", MATCHED, MB, 10 * MB)
def _most_of_all_sizes(strategy: str, made: Setting, size: float, other_size: float) -> Found:
    """All-reduce on the fat tree over RAMP's, and the same at a neighbouring size."""
    return found(
        _all_reduce_over_ramp(strategy, size, made),
        **{"larger" if other_size > size else "smaller": _all_reduce_over_ramp(strategy, other_size, made)},
    )


@claim("ramp", "RAMP-F20-mostc")
def all_reduce_most_with_delays_once() -> Found:
    pairs = estimate("fat_tree", "flat", "all_to_all", GB, ONCE)
    return found(
        _all_reduce_over_ramp("ring", MB, ONCE),
        path_us=pairs.h2h_s / pairs.steps * 1e6,
        all_to_all=speed_up("all_to_all", GB, ONCE).times,
        ring=_all_reduce_over_ramp("ring", 10 * GB, matched(ONCE, ONCE.fast_rate)),
    )


@claim("ramp", "RAMP-F21-ring")
def ring_least() -> Found:
    return found(_all_reduce_over_ramp("ring", 10 * GB, MATCHED), five=_over_five_switches(), switches=P.switches[-1])


def _over_five_switches() -> float:
    return _all_reduce_over_ramp("ring", 10 * GB, matched(setting("p", switches="1x3x5x5"), P.fast_rate))


@claim("ramp", "RAMP-F21-ring5")
def ring_least_over_five_switches() -> Found:
    return found(_over_five_switches(), tiers=len(P.switches), switches=P.switches[-1])


@claim("ramp", "RAMP-F21-ringn")
def ring_least_over_nvswitches() -> Found:
    made = setting("p", switches="1x1x3x5", nvswitches=2)
    times = _all_reduce_over_ramp("ring", 10 * GB, matched(made, P.fast_rate))
    return found(times, all_to_all=speed_up("all_to_all", GB, made).times)


@claim("ramp", "RAMP-F21-hiermostc")
def hierarchical_most_with_delays_once() -> Found:
    made = matched(ONCE, ONCE.fast_rate)
    return found(_all_reduce_over_ramp("hierarchical", MB, made), ring=_all_reduce_over_ramp("ring", 10 * GB, made))


@claim("ramp", "RAMP-8-16pct", MATCHED)
@claim("ramp", "RAMP-8-16pctw", matched(WIDE, P.fast_rate))
def gain_in_data_limited_region(made: Setting) -> float:
    return 100 * (_all_reduce_over_ramp("hierarchical", 10 * GB, made) - 1)


@claim("ramp", "RAMP-F21-flat")
def ramp_is_flat() -> Found:
    sizes = (32, 64, 256, 1024, 4096, 32768, 65536)
    times = [
        fastest("ramp", "reduce_scatter", GB, matched(setting("p", num_nodes=n), P.fast_rate)).h2t_s for n in sizes
    ]
    return found(max(times) < 1.05 * min(times), rise=100 * (max(times) / min(times) - 1))


@claim("ramp", "RAMP-F22")
def latency_is_negligible() -> list[bool]:
    times = [
        fastest("ramp", "all_reduce", 10 * GB, MATCHED),
        *(estimate("fat_tree", s, "all_reduce", 10 * GB, MATCHED) for s in ("hierarchical", "ring")),
    ]
    return [e.h2t_s > 10 * e.h2h_s for e in times]


@claim("ramp", "RAMP-F19-a2a")
def all_to_all_matched_least() -> Found:
    least = speed_up("all_to_all", GB, matched(P, SLOW), systems=["fat_tree"])
    return found(least.times, ramp_ms=least.ramp.total_s * 1e3, tree_ms=least.rival.total_s * 1e3)


@claim("ramp", "RAMP-F19-a2amost")
def all_to_all_matched_most() -> Found:
    times = speed_up("all_to_all", GB, matched(setting("p", forwarded=1), FAST), systems=["topoopt"]).times
    return found(times, others=P.num_nodes - 1, third=(P.num_nodes - 1) / 3)


@claim("ramp", "RAMP-F19-range")
def matched_least() -> Found:
    least = min(speed_up(name, GB, matched(P, rate)).times for name in COLLECTIVES for rate in (SLOW, FAST))
    x = P.transceivers
    return found(least, used=x // (x - 1) * (x - 1), all=x)  # one for each of x - 1 peers


@claim("ramp", "RAMP-F19-27x", "all_gather", "topoopt")
@claim("ramp", "RAMP-F19-32x", "broadcast", "fat_tree")
def _rise(collective: str, system: str, made: Setting = P) -> Found:
    """Speed-up against a system at 12.8 Tb/s over that at 0.2 Tb/s, and both."""
    fast, slow = (speed_up(collective, GB, matched(made, rate), systems=[system]).times for rate in (FAST, SLOW))
    return found(fast / slow, fast=fast, slow=slow)


@claim("ramp", "RAMP-F19-32xc")
def rise_against_fat_tree_with_delays_once() -> Found:
    once = _rise("broadcast", "fat_tree", ONCE)
    unmatched = speed_up("broadcast", GB, ONCE, systems=["fat_tree"]).times
    return found(once.value, **once.facts, unmatched=unmatched)


@claim("ramp", "RAMP-F19-bestFT")
def fat_tree_is_the_best_rival() -> bool:
    others = [name for name in COLLECTIVES if name != "broadcast"]
    return all(
        min(RIVALS, key=lambda s: fastest(s, name, GB, made).total_s) == "fat_tree"
        for made in (matched(P, rate) for rate in SPREAD)
        for name in others
    )
