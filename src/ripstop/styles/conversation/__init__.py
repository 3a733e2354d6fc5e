"""Conversation: a service desk that plans, acts, waits and hands over."""
