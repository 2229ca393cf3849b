"""Numbers that bound what is evaluated: the only ones, so that a test can move them and see that no answer moves.

A module takes its limits from here by name. A number that a kernel reads stays in the file of the kernel, since numba compiles
a kernel again when its own file changes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = [
    "CHUNKS_CARRIED",
    "EVENTS_TOGETHER",
    "HOPS_AT_ONCE",
    "LIMITS",
    "MOST_LISTED",
    "ROUTES_AT_ONCE",
    "ROUTES_LISTED",
    "TRANSFERS_LISTED",
    "Guard",
    "limit",
]

Kind = Literal["refusal", "effort", "memory", "range"]
REFUSAL: Kind = "refusal"
EFFORT: Kind = "effort"
MEMORY: Kind = "memory"
RANGE: Kind = "range"


class Guard(NamedTuple):
    """A number that bounds what is evaluated.

    Args:
        value: the number.
        unit: what it counts.
        kind: refusal: what is larger is refused, with the number; effort: what a search or a bound tries, so that another
            number may choose another plan; memory: what is kept, or evaluated at once, or done in one of two ways that give
            the same; range: of a type of number, which no answer reaches.
        bounds: what it bounds, after the unit.
    """

    value: int
    unit: str
    kind: Kind
    bounds: str


# fmt: off
LIMITS: dict[str, Guard] = {
    "limits.CHUNKS_CARRIED": Guard(1 << 32, "chunks", REFUSAL, "that all transfers carry together, where every one is played"),
    "limits.EVENTS_TOGETHER": Guard(1 << 26, "transfers", MEMORY, "of single chunks that are sorted at once: 512 MB"),
    "limits.MOST_LISTED": Guard(1 << 21, "transfers", MEMORY, "of a step that are listed where a few define all: 40 MB"),
    "limits.ROUTES_LISTED": Guard(1 << 16, "routes", MEMORY, "of a step that are evaluated as a whole"),
    "limits.HOPS_AT_ONCE": Guard(1 << 18, "hops", MEMORY, "of circuits whose paths are evaluated at once"),
    "limits.ROUTES_AT_ONCE": Guard(1 << 16, "routes", MEMORY, "of a larger step that are evaluated at once"),
    "routes.MOST_HOPS": Guard(1 << 20, "hops", MEMORY, "of the routes of a step that a fabric gives all at once"),
    "limits.TRANSFERS_LISTED": Guard(1 << 26, "transfers", REFUSAL, "of a step of phases that are listed: some 2 GB"),
    "ends.ROWS_TOGETHER": Guard(1 << 12, "rows", MEMORY, "of steps whose senders and receivers are counted together"),
    "candidate.MOST_DISTINCT_STEPS": Guard(1 << 14, "steps", EFFORT, "of a schedule that a search evaluates to the end"),
    "search.MOST_STEP_BYTES": Guard(1 << 27, "bytes", MEMORY, "of the steps and circuits of a fabric that are kept"),
    "order.MOST_BYTES": Guard(1 << 26, "bytes", MEMORY, "of circuits of the last steps that rules of circuits remember"),
    "direct_parts.MOST_PARTS": Guard(256, "parts", EFFORT, "of a block, in a search"),
    "graph_schedule.MOST_BITS": Guard(1 << 26, "bits", REFUSAL, "of the tables of a custom collective"),
    "digraphs.MOST_RELAXED": Guard(1 << 29, "links", EFFORT, "that are relaxed in a pass which moves the paths of all pairs"),
    "ocs_netlist.MOST_CHANNELS": Guard(1 << 20, "circuits", REFUSAL, "of a round whose data an ocs distinguishes"),
    "held_graph.MOST_TRIED": Guard(1 << 20, "pairs", EFFORT, "of nodes of a held graph that a search evaluates"),
    "held_graph.MOST_VISITED": Guard(1 << 26, "links", EFFORT, "of circulants whose distances a search compares"),
    "held_graph.MOST_COMPARED": Guard(1 << 12, "pairs", EFFORT, "of nodes of circulants whose loads a search compares"),
    "held_sets.ALL_SETS": Guard(512, "sets", EFFORT, "of shifts, one a plane, up to which all may be held"),
    "held_sets.MOST_FAMILIES": Guard(512, "choices", EFFORT, "of sides and radices of balanced_digits, those of fewest digits"),
    "held_shifts.ALL_SHIFTS": Guard(256, "nodes", EFFORT, "up to which every shift may be held"),
    "held_shifts.KEPT_NODES": Guard(8192, "nodes", MEMORY, "whose factorisations are kept: 30 MB a collective"),
    "packet.MOST_FLOWS": Guard(3 << 10, "flows", EFFORT, "of nodes over links whose least time is a lower bound"),
    "shared_capacity.PARTS": Guard(840, "parts", EFFORT, "of a rate that both ways of a link share, each given to one way"),
    "translated_paths.MOST_TREES": Guard(4, "trees", EFFORT, "of a root that are translated, equal but for their paths"),
    "symmetry.MOST_SINGLED": Guard(64, "switches", EFFORT, "with the same links up to which symmetries are looked for"),
    "spanning_trees.MOST_SHARED": Guard(1 << 15, "flows", REFUSAL, "of ranks over links whose ways share rates: seconds"),
    "file_graph.MOST_EDGES": Guard(1_000_000, "edges", REFUSAL, "of a file that describes a network, unless edges= is larger"),
    "file_graph.MOST_BYTES": Guard(1 << 28, "bytes", REFUSAL, "of a file that describes a network"),
    "network.MOST_RATES": Guard(1 << 12, "rates", REFUSAL, "of the links of a network from a file"),
    "network.MOST_RATIO": Guard(10**9, "times", REFUSAL, "the slowest link of a network from a file"),
    "network.MOST_SCANNED": Guard(1 << 32, "links", REFUSAL, "times receivers that are scanned for routes: minutes"),
    "overlap.MOST_STEPS": Guard(1 << 14, "steps", REFUSAL, "of a schedule"),
    "planner.MANY": Guard(512, "nodes", EFFORT, "above which break-evens are searched within a decade"),
    "published.MOST_BYTES": Guard(1 << 26, "bytes", REFUSAL, "of a file"),
    "published.MOST_STEPS": Guard(1 << 12, "steps", REFUSAL, "of a published schedule"),
    "published.MOST_NODES": Guard(1 << 12, "nodes", REFUSAL, "of a published case"),
    "published.MOST_CASES": Guard(1 << 12, "cases", REFUSAL, "of a published matrix"),
    "relayed_exchange.MOST_ROWS_TRIED": Guard(1 << 20, "transfers", EFFORT, "of a schedule that a search evaluates"),
    "relayed_exchange.MOST_STRIDES": Guard(512, "strides", EFFORT, "of which the second one is chosen"),
    "set_routes.MOST_CLASSES": Guard(25, "classes", EFFORT, "of NICs in a bound of routes that are set once a job"),
    "shift_laws.MOST_NODES": Guard(8192, "nodes", EFFORT, "up to which a search plans held shifts too"),
    "sizes.MOST_SIZES": Guard(1000, "sizes", REFUSAL, "of one sweep"),
    "streams.MOST_PIECES": Guard(1 << 11, "pieces", EFFORT, "that are tried"),
    "streams.MOST_ROWS": Guard(1 << 20, "pieces", EFFORT, "times nodes of a plan that is tried: ten seconds"),
    "streams.SETTINGS": Guard(256, "settings", EFFORT, "of devices that count as a transfer of the plans that are timed"),
    "streams.MOST_TIMED": Guard(96 << 10, "transfers", EFFORT, "of all steps of all plans that are timed: ten seconds"),
    "streams.LARGE_NODES": Guard(1 << 14, "nodes", EFFORT, "above which one number of pieces is tried, a piece a slot"),
    "streams.MOST_DEVICES": Guard(1 << 26, "devices", EFFORT, "of a machine up to which each is followed"),
    "switch_plans.MOST_STEPS": Guard(512, "steps", EFFORT, "of a schedule that is divided among switches"),
    "grid.MOST_TRANSFERS": Guard(1 << 24, "transfers", REFUSAL, "of a step of a grid: about 300 MB"),
    "pipeline.MOST_PIECES": Guard(1 << 20, "pieces", REFUSAL, "of a message, on all trees together"),
    "tree_packing.WORK": Guard(2000000, "visits", EFFORT, "of links in a search for trees, beyond the fewest passes"),
    "walk.KEPT_RANKS": Guard(4096, "ranks", MEMORY, "up to which the steps of a walk are kept"),
    "breadth_first.MOST_CHUNKS": Guard(1 << 24, "chunks", REFUSAL, "of a schedule: 128 MB for each permutation of them"),
    "breadth_first.MOST_TRIED": Guard(1 << 22, "transfers", EFFORT, "of all distinct steps that a search evaluates"),
    "circulant_rings.MOST_TRIED": Guard(1 << 20, "transfers", EFFORT, "of all distinct steps that a search evaluates"),
    "circulant_rings.MOST_TRIED_MOVES": Guard(1 << 21, "transfers", EFFORT, "the same of an all_to_all"),
    "digit_shifts.MOST_STEPS": Guard(1 << 14, "steps", REFUSAL, "of a schedule"),
    "disjoint_trees.MOST_ROWS_TRIED": Guard(1 << 22, "transfers", EFFORT, "of the steps that a search evaluates"),
    "forest.MOST_NODES": Guard(256, "nodes", REFUSAL, "of a job whose trees are packed one by one: ten seconds and more"),
    "forest.MOST_NODES_SOON": Guard(128, "nodes", EFFORT, "of such a job up to which translated trees are not tried: seconds"),
    "forest.MOST_NODES_LISTED": Guard(1024, "nodes", REFUSAL, "of a job whose trees are translated and listed: half a minute"),
    "forest.MOST_NODES_ROOTED": Guard(1024, "nodes", REFUSAL, "of a job whose trees have one root: ten seconds"),
    "forest.MOST_NODES_TRIED": Guard(32, "nodes", EFFORT, "of such a job in a search: a tenth of a second"),
    "forest.MOST_NODES_ROOTED_TRIED": Guard(64, "nodes", EFFORT, "of such a job of one root in a search: a tenth of a second"),
    "forest.MOST_SPLITTINGS_TRIED": Guard(1 << 14, "vertices", EFFORT, "not ranks, times ranks, in a search: a minute"),
    "forest.MOST_NODES_TRANSLATED": Guard(2048, "nodes", REFUSAL, "of a machine whose routes are all evaluated"),
    "forest.MOST_ROUTED": Guard(1 << 18, "routes", EFFORT, "of ranks past no other rank, in a search: a second"),
    "forest.MOST_TRIED": Guard(1 << 23, "transfers", EFFORT, "of the steps that differ, in a search"),
    "forest.MOST_FLOWS": Guard(1 << 20, "flows", REFUSAL, "of ranks over links in an all_to_all: a minute"),
    "forest.MOST_FLOWS_TRIED": Guard(3 << 10, "flows", EFFORT, "of such an all_to_all in a search: a tenth of a second"),
    "forest.MOST_PIECES": Guard(1 << 12, "pieces", REFUSAL, "of the data of a tree"),
    "hub_chains.MOST_TRIED": Guard(1 << 20, "transfers", EFFORT, "of all distinct steps of a candidate"),
    "hub_chains.MOST_LONG_PIECES": Guard(4096, "pieces", EFFORT, "of one chain of all nodes each way"),
    "hub_chains.MOST_TRIED_LONG": Guard(1 << 22, "transfers", EFFORT, "of all distinct steps of such a candidate"),
    "loop_back_rings.MOST_CHUNKS": Guard(1 << 24, "chunks", REFUSAL, "of a schedule: 128 MB for each permutation of them"),
    "mesh.SEARCHED_TRANSFERS": Guard(1 << 18, "transfers", EFFORT, "of a step that a search evaluates: 512 nodes, all to all"),
    "packed_trees.MOST_PIECES": Guard(1 << 12, "pieces", REFUSAL, "of a message"),
    "rails.MOST_NODES": Guard(1 << 16, "nodes", REFUSAL, "of a machine"),
    "ramp.MOST_STAGES": Guard(4096, "stages", REFUSAL, "of a broadcast"),
    "ring.MOST_ROWS": Guard(1 << 26, "transfers", REFUSAL, "of a schedule of distinct steps: some seconds"),
    "ring.MOST_NODES_TRIED": Guard(512, "nodes", EFFORT, "of such a schedule in a search for the fastest plan"),
    "rotated_exchange.MOST_ROWS_TRIED": Guard(1 << 21, "transfers", EFFORT, "of all steps of a candidate of a search"),
    "rotated_rings.MOST_CHUNKS": Guard(1 << 24, "chunks", REFUSAL, "of a schedule: 128 MB for each permutation of them"),
    "rotated_rings.MOST_ROWS": Guard(1 << 20, "transfers", EFFORT, "of an all_reduce with cut blocks in a search"),
    "skewed_exchange.MOST_CHUNKS": Guard(1 << 24, "chunks", REFUSAL, "of a message: 256 parts on 65,536 nodes"),
    "spaced_hubs.MOST_TRIED": Guard(1 << 21, "transfers", EFFORT, "of all distinct steps of a candidate"),
    "standing_tree.MOST_EXCHANGING": Guard(512, "nodes", EFFORT, "of the last level, which exchange all to all"),
    "torus2d.MOST_ROWS": Guard(1 << 26, "transfers", REFUSAL, "of an all_to_all, whose steps are all distinct"),
    "torus_all_ports.MOST_CHUNKS": Guard(1 << 24, "chunks", REFUSAL, "of a schedule: 128 MB for each permutation of them"),
    "torus_all_ports.MOST_TRIED": Guard(1 << 16, "transfers", EFFORT, "of a dimension in a step that a search evaluates"),
    "torus_trees.MOST_ROWS_TRIED": Guard(1 << 19, "transfers", EFFORT, "of the steps that differ, of one number of pieces"),
    "twisted_grid.MOST_NODES": Guard(1 << 17, "nodes", REFUSAL, "of a machine"),
    "two_sided_ring.MOST_TRIED": Guard(1 << 18, "transfers", EFFORT, "of a step that a search evaluates"),
    "wavelength_exchange.MAX_STEPS": Guard(1 << 16, "steps", REFUSAL, "of a schedule"),
    "wrht.ALL_SIZES_UP_TO": Guard(4096, "nodes", EFFORT, "of a ring up to which every group size is evaluated"),
    "around.MOST_CELLS": Guard(1 << 25, "cells", REFUSAL, "of the ways that are tried in a step"),
    "around.WIDEST": Guard(1 << 30, "wavelengths", RANGE, "more than any circuit has"),
    "hold.MOST_HELD": Guard(1 << 20, "circuits", EFFORT, "of all classes of steps together, if they are held"),
    "lasers.MOST_COLOURS": Guard(1 << 25, "pairs", REFUSAL, "of nodes and colours of an edge colouring: 0.25 GB"),
    "size.MOST_BYTES": Guard(1 << 30, "bytes", REFUSAL, "of the circuits of a step, and of what finds them"),
    "lightpath.MOST_HOPS": Guard(1 << 27, "hops", REFUSAL, "of the circuits of a step"),
    "lightpath.LONG_HOPS": Guard(1 << 20, "hops", MEMORY, "of a step from which on its rounds are remembered"),
    "lightpath.MOST_CLASSES": Guard(1 << 14, "classes", EFFORT, "of steps whose lasers follow from each other"),
    "lightpath.MOST_SPREAD": Guard(1 << 14, "circuits", EFFORT, "up to which laser sets are spread"),
    "chessboard.MOST_HOPS": Guard(1 << 25, "hops", MEMORY, "of the circuits of a step up to which a search lists them"),
    "chessboard.MOST_LISTED": Guard(1 << 27, "hops", REFUSAL, "of the circuits of a step"),
    "ocs.MOST_HOPS": Guard(1 << 24, "links", REFUSAL, "that the circuits of one step pass at most, together"),
    "optree.MAX_SEGMENTS": Guard(1 << 24, "segments", REFUSAL, "that the paths of one stage pass: 270 MB"),
    "terarack.MAX_SEGMENTS": Guard(1 << 22, "segments", REFUSAL, "used in one step; first fit tries each of them"),
    "closed_order.MOST_PATHS": Guard(256, "paths", EFFORT, "with other ends, for each gap and direction"),
    "graph.MOST_OVER_UNIT": Guard(1 << 40, "units", REFUSAL, "of capacity of all links of a network together"),
    "packing.MOST_TREES": Guard(1 << 10, "trees", EFFORT, "with one root that are tried"),
    "end_to_end.MOST_MOVES": Guard(100000, "paths", EFFORT, "that look for a colour in one search by ejection"),
    "least_overlap.MAX_PASSES": Guard(600, "passes", EFFORT, "of a search for the least overlap"),
    "least_overlap.PATIENCE": Guard(300, "passes", EFFORT, "without a better result"),
    "least_overlap.MAX_PROGRAMME_SIZE": Guard(1 << 18, "tiles", EFFORT, "times circuits that a linear programme is solved for"),
    "sharing.MAX_MOVES": Guard(20000000, "hops", EFFORT, "of circuits moved from set to set: about 0.2 s"),
    "cells.SLICE": Guard(1 << 20, "events", MEMORY, "between two checks for an interrupt"),
    "cells.FIRST_CELLS": Guard(1 << 12, "cells", MEMORY, "that a table has place for at first"),
    "device_uses.MOST_MEMBERS": Guard(1 << 27, "devices", REFUSAL, "of a machine whose settings are followed one by one"),
    "rounds.QUOTIENT_FLOWS": Guard(4096, "flows", MEMORY, "of a step from which on equal ones are simulated as one"),
    "fold.MOST_KINDS": Guard(1 << 12, "kinds", REFUSAL, "of transfers of a step"),
    "standing.SETTINGS_AT_ONCE": Guard(1 << 18, "settings", MEMORY, "of circuits that are compared at once"),
    "ring_trees.MOST_POSITIONS": Guard(1 << 16, "positions", EFFORT, "of a ring up to which its own bound is computed"),
    "ring_trees.MOST_WORK": Guard(1 << 23, "positions", EFFORT, "of all levels; with more, the least length is taken"),
    "bounds.MOST_STEPS": Guard(4096, "steps", EFFORT, "more than the fewest that a bound is computed with"),
    "engine.LARGE_CHUNKS": Guard(1 << 20, "pairs", EFFORT, "of ranks and chunks up to which long runs are followed"),
    "engine.LARGE_RANKS": Guard(1 << 14, "ranks", EFFORT, "the same"),
    "guards.MOST_CIRCUITS": Guard(1 << 24, "circuits", REFUSAL, "that the tables of a programme hold"),
    "list_schedule.MOST_CHUNKS": Guard(1 << 24, "pairs", REFUSAL, "of ranks and chunks whose data is followed"),
    "long_runs.MOST_TRIED": Guard(256, "steps", EFFORT, "of a run that are scheduled before it is given up"),
    "long_runs.MOST_HELD": Guard(1 << 20, "pairs", REFUSAL, "of kinds of ranks and chunks whose data is followed"),
    "over_time.MAX_TIMES": Guard(1 << 21, "transfers", MEMORY, "of repeated steps that are placed one by one"),
    "traffic.MAX_ROWS": Guard(1 << 20, "transfers", EFFORT, "that are recorded one by one"),
    "data.MOST_CHUNKS": Guard(1 << 24, "pairs", REFUSAL, "of ranks and chunks whose data is followed"),
    "data.MOST_CHUNK_ROWS": Guard(1 << 26, "chunks", REFUSAL, "that all transfers carry"),
    "data.WINDOW": Guard(1 << 22, "pairs", MEMORY, "of ranks and chunks that are replayed together"),
    "data.MOST_REPLAYED": Guard(1 << 31, "chunks", REFUSAL, "of all transfers of the largest schedule that is replayed"),
    "data.MOST_SUMS": Guard(1 << 25, "sums", REFUSAL, "of a repeated step that are followed one by one"),
    "rows.MOST_COPIED": Guard(1 << 24, "rows", REFUSAL, "copied for steps that a plan does not repeat"),
    "cut.PAIRS_AT_ONCE": Guard(1 << 12, "pairs", MEMORY, "of ranks that are compared at once"),
    "contributions.CHUNKS_AS_A_PHASE": Guard(5000, "chunks", MEMORY, "listed and played in the time of a phase"),
    "dependencies.MANY": Guard(1 << 40, "contributions", RANGE, "above which a count is not distinguished"),
    "emulated.FEW_SIGNALS": Guard(20000, "signals", EFFORT, "of a plan that is followed in passing"),
    "emulated.FEW_INPUTS": Guard(1 << 20, "ports", EFFORT, "of the elements of its machine, for the same"),
    "epochs.MOST_CANDIDATES": Guard(1 << 20, "circuits", MEMORY, "that are tried at once"),
    "explain.MOST_TIMES": Guard(1 << 40, "contributions", RANGE, "above which a count is not distinguished"),
    "rows.MOST_STEP": Guard(1 << 31, "steps", REFUSAL, "that rows of a table may number"),
}
"""Name -> guard; the name is that of the module and of its constant."""
# fmt: on


def limit(name: str) -> int:
    """The value of a limit.

    Args: name: in `LIMITS`.
    """
    return LIMITS[name].value


CHUNKS_CARRIED = limit("limits.CHUNKS_CARRIED")
EVENTS_TOGETHER = limit("limits.EVENTS_TOGETHER")
HOPS_AT_ONCE = limit("limits.HOPS_AT_ONCE")
MOST_LISTED = limit("limits.MOST_LISTED")
ROUTES_LISTED = limit("limits.ROUTES_LISTED")
ROUTES_AT_ONCE = limit("limits.ROUTES_AT_ONCE")
TRANSFERS_LISTED = limit("limits.TRANSFERS_LISTED")
