"""Sources of data (memory, torch, Dask), array namespaces, checks, and threads."""
