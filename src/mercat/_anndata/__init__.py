"""Read data from AnnData objects and write maps to them, for `tl`, `pl` and the command line."""
