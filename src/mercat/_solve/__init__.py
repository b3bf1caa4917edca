"""From components to a map: starts, the exact solver, landmarks and placement, diagnostics."""
