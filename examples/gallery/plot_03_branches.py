"""
Which way a branch leads
========================

Cells that develop follow paths that fork. Five branches of a tree grow here in 60 dimensions: two at the end
of the first, two more at the end of the second. The map preserves the forks, and the order along each branch.

Angles alone hardly determine the *spacing* along a thin path; the distance term of the default objective
improves it.
"""

import numpy as np

from mercat import Mercat, plot

rng = np.random.default_rng(0)
tips, depths = [np.zeros(60)], [0.0]  # of the root, then of each branch
points, branch, depth = [], [], []
for name, origin in (("1", 0), ("2", 1), ("3", 1), ("4", 2), ("5", 2)):
    tip = tips[origin] + rng.normal(size=60)
    along = rng.random((300, 1))
    points.append(tips[origin] + along * (tip - tips[origin]))
    depth.append(depths[origin] + along[:, 0])
    branch += [f"branch {name}"] * 300
    tips.append(tip)
    depths.append(depths[origin] + 1)
X = np.concatenate(points) + rng.normal(scale=0.25, size=(1500, 60))

Y = Mercat(random_state=0).fit_transform(X)
ax = plot.map(Y, color=branch)

# %%
# The same map, coloured by the distance from the root along the tree:

ax = plot.map(Y, color=np.concatenate(depth))

# %%
# The paper's objective has angles only. Order and directions are the same, but the branch in the middle has
# a gap that the data do not have:

ax = plot.map(Mercat(objective="absolute", random_state=0).fit_transform(X), color=branch)
