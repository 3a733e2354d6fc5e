"""Blackboard folders as definitions."""


# The commands for blackboards.


# A board on disk: the plan, the history and the reports that people and their editors share with a run.
