"""Speed, memory and scale of Mercat beside its peers. Run from the repository's root."""
