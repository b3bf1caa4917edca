"""
A closed cycle
==============

Some data, such as the phases of a dividing cell, form a closed cycle. Here, points lie on a noisy closed
curve in 40 dimensions. On the map, the curve is closed, too, and the points are in the order of their phase.
"""

import numpy as np

from mercat import Mercat, metrics, plot

rng = np.random.default_rng(0)
phase = rng.uniform(0, 2 * np.pi, 1500)
curve = np.column_stack([np.cos(phase), np.sin(phase), 0.4 * np.sin(2 * phase)])
X = curve @ rng.normal(size=(3, 40)) + rng.normal(scale=0.3, size=(1500, 40))

Y = Mercat(random_state=0).fit_transform(X)
ax = plot.map(Y, color=phase, palette="twilight")

# %%
# Because of the noise, angles cannot be preserved exactly (1 would be perfect):

print(metrics.angle_preservation(X, Y))
