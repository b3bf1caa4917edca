"""Model files, atomic writes, and checks of untrusted files."""
