"""Reduction of the data: principal components, classical scaling of distances, rank by ScreeNOT."""
