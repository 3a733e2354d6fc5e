"""The kinds of what waits for a person. Imports nothing, so that help texts can name them at once."""

REVIEWED, QUESTION, DOUBTED, GUARDED, PAUSED = "review", "question", "doubt", "guard", "outage"
HANDOFF = "handoff"
"""A conversation that is handed over to a person; also the purpose of the question."""
STUCK, SET_ASIDE = "stuck", "set_aside"
HALTED = (STUCK, SET_ASIDE)
"""Runs that wait for a person without a question: nothing can move them, or workers leave them alone."""
KINDS = (REVIEWED, QUESTION, DOUBTED, GUARDED, PAUSED, HANDOFF, *HALTED)
