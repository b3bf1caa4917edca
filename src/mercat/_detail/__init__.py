"""Neighbourhoods beside angles: neighbours, affinities, repulsion, the descent, new points."""
