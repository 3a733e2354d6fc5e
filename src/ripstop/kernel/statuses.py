"""The statuses of a run as people see them. Imports nothing, so that help texts can name them at once.

A status in a journal is an outcome, or what `run.status` says of a run that has not ended. A list of runs also knows
`set_aside`, for those that workers leave alone, and `interrupted`, for those that have work to do and no worker.
"""

STATUSES = (
    *("working", "interrupted", "paused", "waiting", "listening", "stuck", "set_aside"),
    *("failed", "limit", "stopped", "restart", "completed"),
)
"""What is at work first, then what needs a person, then how runs end."""
