"""Conversations over HTTP: messages in, answers and events out."""
