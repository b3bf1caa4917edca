"""Error bars: other maps of the same data, and what they tell of each point."""
