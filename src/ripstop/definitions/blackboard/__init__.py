"""Blackboard folders as definitions."""
