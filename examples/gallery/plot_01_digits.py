"""
A map, a globe, and trust
=========================

This example shows an embedding in three ways: as a Mercator map with the names of its classes, as a globe,
and coloured by how well the angles at each point are preserved.
"""

from sklearn.datasets import load_digits

from mercat import Mercat, plot

X, digit = load_digits(return_X_y=True)
model = Mercat(random_state=0).fit(X)
ax = plot.map(model.embedding_, color=digit, labels=True, legend=False)

# %%
# The same points on the globe:

ax = plot.globe(model.embedding_, color=digit)

# %%
# The loss of each point shows where the map can be trusted. Angles at dark points are preserved worst:

ax = plot.trust(model)
