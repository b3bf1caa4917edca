"""
Which way a branch leads
========================

Cells that develop follow paths that fork. Five branches of a random tree grow here in 60 dimensions; colour
is the branch, then the way from the root. The map keeps both the forks and the order along each branch.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercat import Mercat, plot

rng = np.random.default_rng(3)
starts, ends, before = [np.zeros(60)], [], [0.0]
branch, along = [], []
points = []
parents = [None, 0, 0, 1, 1]
for k, parent in enumerate(parents):
    start = np.zeros(60) if parent is None else ends[parent]
    way = 0.0 if parent is None else before[parent]
    end = start + rng.normal(size=60)
    t = rng.random(300)
    points.append(start + t[:, None] * (end - start))
    branch += [f"branch {k + 1}"] * 300
    along.append(way + t)
    ends.append(end)
    before[k : k + 1] = [way + 1]
X = np.concatenate(points) + rng.normal(scale=0.25, size=(1500, 60))

Y = Mercat(random_state=0).fit_transform(X)
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.6), layout="constrained")
plot.map(Y, color=branch, ax=left)
plot.map(Y, color=np.concatenate(along), ax=right)
left.set_title("branch")
right.set_title("way from the root")
plt.show()
