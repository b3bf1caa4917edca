"""
Five ways to flatten a globe
============================

No flat map of a sphere preserves both angles and areas. The Mercator projection preserves angles. Lambert,
Equal Earth and Mollweide preserve areas, and therefore show densities correctly. The orthographic projection
is the view of a globe from space.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from mercat import Mercat, plot, projections

X, digit = load_digits(return_X_y=True)
Y = Mercat(random_state=0).fit_transform(X)

ax = plot.map(Y, color=digit, projection="mollweide", legend=False)

# %%
# All five projections:

figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
for ax, name in zip(axes.flat, projections.NAMES, strict=False):
    plot.map(Y, color=digit, projection=name, legend=False, ax=ax)
    ax.set_title(name)
axes.flat[-1].remove()
plt.show()
