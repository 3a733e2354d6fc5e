"""Which runs make up a family: a run, the children that belong to it, and theirs.

A child belongs to the run that started it if its id begins with that run's id and a dot. A named child, which several
runs may wait for, has its own family.
"""


def belongs_to(run_id: str, parent: str) -> bool:
    return run_id.startswith(f"{parent}.")
