"""Reduction of the data to leading components."""
