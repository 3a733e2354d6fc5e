"""Webhooks: other systems are told what happens in a journal, signed, in order for each run, and at least once."""
