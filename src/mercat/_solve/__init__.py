"""From components to a map: starts, exact solver, Algorithm 1, landmarks, placement, diagnostics."""
