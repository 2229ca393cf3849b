"""Routes on a grid of tiles: who passes where, so that no edge carries many circuits at once.

Plain functions over columns: senders' and receivers' tiles in, paths out, with a bound below which no routes can load the
fullest edge. They know grids and edges, no fabric, no schedule and no light. One file an idea:

    grid                tiles, edges, what is shut; `Routes` with their bound
    dimension_order     along the row, then along the column, or the other way round
    paths               one of the shortest paths by chance, cheapest paths, ways around what is shut
    bounds              cuts, and prices of edges: what no routes can undercut
    least_overlap       as few circuits on the fullest edge as can be found (algorithm 2), with its bound
    column_generation   the same by linear programme, where no cut proves it
    k_shortest          the k shortest paths of one pair
    reach               which tiles light can go between
    split               circuits to rounds, where an edge has too many (appendix C)
    sharing             laser sets that share waveguides
    transfer_rounds     transfers to rounds, where a tile has too few lasers (algorithm 3), and the fewest rounds
    colouring           edge colouring, which the latter rests on

Source: LUMORPH section 3.1, appendices A and C.
"""
