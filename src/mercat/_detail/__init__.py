"""Detail: neighbours, affinities, repulsion, the descent and the placement of new points."""
