"""Conversations: bots that plan from a configuration, answer, act, and hand over to a person."""
