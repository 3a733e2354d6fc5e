"""Graphs: agents take turns along the states of a YAML file."""
