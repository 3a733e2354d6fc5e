"""Commands that agents run: which programs, where, in what sandbox, and for how long."""
