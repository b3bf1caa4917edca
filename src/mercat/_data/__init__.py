"""Where rows live, and how they are read, checked and shared among threads."""
