"""Faces that answer over HTTP, behind the one door."""
