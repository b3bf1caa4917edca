"""Pytest runs the examples of the guides (*.md); the site's own scripts are no tests."""

collect_ignore_glob = ["*.py", "_ext/*", "_build/*", "generated/*", "gallery/*"]
