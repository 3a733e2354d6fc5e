"""The web desk: one page per thing that a person wants to see or decide.

A page shows the journal, never a guess. Everything works without script, except what is live. What an agent wrote is
hostile. No style is known here: a page draws the parts that a style gives, and does what its actions allow.
"""
