"""Parts of figures: axes, colours, labels, legends, marks."""
