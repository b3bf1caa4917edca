"""
Side by side, with numbers
==========================

This example compares embeddings of the same points, in one figure and by the same measures. t-SNE preserves
neighbourhoods. Mercat preserves angles and distances; with `detail`, it also preserves neighbourhoods.
"""

from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from threadpoolctl import threadpool_limits

from mercat import Mercat, metrics, plot

X, digit = load_digits(return_X_y=True)
X, digit = X[:900], digit[:900]
with threadpool_limits(1):
    flat = TSNE(random_state=0).fit_transform(X)
embeddings = {
    "PCA": PCA(2, random_state=0).fit_transform(X),
    "t-SNE": flat,
    "Mercat": Mercat(random_state=0).fit_transform(X),
    "Mercat, detail": Mercat(detail=0.3, random_state=0).fit_transform(X),
}
axes = plot.compare(embeddings, color=digit)

# %%
# The four measures of the paper (1 is perfect):

measures = (
    "angle_preservation",
    "distance_preservation",
    "neighborhood_preservation",
    "density_preservation",
)
print(f"{'':26}" + "".join(f"{name:>16}" for name in embeddings))
for measure in measures:
    scores = [float(getattr(metrics, measure)(X, Y)) for Y in embeddings.values()]
    print(f"{measure:26}" + "".join(f"{score:16.2f}" for score in scores))
