"""Reading what authors write: positions on everything, all mistakes at once."""
