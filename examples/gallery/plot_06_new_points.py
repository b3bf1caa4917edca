"""
New points on an old map
========================

A model fitted to two thirds of the digits places the others, each independently of the batch.
"""

import numpy as np
from sklearn.datasets import load_digits

from mercat import Mercat, plot

X, digit = load_digits(return_X_y=True)
model = Mercat(random_state=0).fit(X[:1200])
Y_new = model.transform(X[1200:])

ax = plot.map(model.embedding_, color=digit[:1200], labels=True, legend=False)

# %%
# The 597 new points:

ax = plot.map(Y_new, color=digit[1200:], center=(0, 0), labels=True, legend=False)

# %%
# One by one or all together:

alone = np.concatenate([model.transform(row[None]) for row in X[1200:1210]])
print(np.array_equal(alone, Y_new[:10]))
