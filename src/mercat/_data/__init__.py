"""Where the data are, how they are read and checked, and how work is spread over threads."""
