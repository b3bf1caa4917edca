"""
A closed cycle
==============

A cycle, such as the phases of a dividing cell, has no beginning. Here, a noisy closed curve lies in 40
dimensions; on the map, it is also closed and in the order of its phase.
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
# Angle preservation; 1 is perfect:

print(metrics.angle_preservation(X, Y))
