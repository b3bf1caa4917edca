"""
New points on an old map
========================

A model is fitted to two thirds of the digits. It then places the other digits on the same map. The position
of each does not depend on the others.
"""

import numpy as np
from sklearn.datasets import load_digits

from mercat import Mercat, plot

X, digit = load_digits(return_X_y=True)
model = Mercat(random_state=0).fit(X[:1200])
Y_new = model.transform(X[1200:])

ax = plot.map(model.embedding_, color=digit[:1200], labels=True, legend=False)

# %%
# The 597 new points are near the old points of the same class:

ax = plot.map(Y_new, color=digit[1200:], center=(0, 0), labels=True, legend=False)

# %%
# Points get the same positions, to the bit, one by one or all together:

alone = np.concatenate([model.transform(row[None]) for row in X[1200:1210]])
print(np.array_equal(alone, Y_new[:10]))
