"""
Which way a branch leads
========================

Developing cells follow paths that fork. Here, the data are a tree with five branches in 60 dimensions: two
start at the end of the first, and two more at the end of the second. The map preserves the forks and the
order along each branch.

Angles alone hardly determine the *spacing* along a thin path. The default objective also includes distances,
which improves the spacing.
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
# The paper's objective includes angles only. Its map shows the same order and directions, but branch 2 has a
# gap that is not in the data:

ax = plot.map(Mercat(objective="absolute", random_state=0).fit_transform(X), color=branch)
