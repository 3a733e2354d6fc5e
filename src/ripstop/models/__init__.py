"""Models: performers of `AskAgent`. `router.Agents` is the one that the worker gets; the others are its siblings."""
