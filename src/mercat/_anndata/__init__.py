"""Read data from AnnData objects and write maps into them, for `tl`, `pl` and the command line."""
