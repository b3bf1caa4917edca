"""From data to their principal components."""
