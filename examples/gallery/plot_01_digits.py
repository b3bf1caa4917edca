"""
A map, a globe, and trust
=========================

One embedding in three views: as a Mercator map with the names of its classes, as a globe, and
coloured by how well the angles at each point are kept.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from mercat import Mercat, plot

X, digit = load_digits(return_X_y=True)
model = Mercat(random_state=0).fit(X)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
plot.map(model.embedding_, color=digit, labels=True, legend=False, ax=left)
plot.globe(model.embedding_, color=digit, legend=False, ax=middle)
plot.trust(model, ax=right)
plt.show()
