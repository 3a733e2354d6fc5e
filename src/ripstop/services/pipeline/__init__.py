"""Working with a delivery project: what is there, where it goes on, what a restart removes and how that is undone."""
