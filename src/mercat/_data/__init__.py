"""Sources of data, validation, and threads."""
