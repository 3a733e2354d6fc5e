"""Stores for journals, as siblings: all pass the same conformance suite (`ripstop.testing`)."""
