"""Reading what authors write: positions on everything, all problems at once."""
