"""Models and other files: written atomically, read without trust."""
