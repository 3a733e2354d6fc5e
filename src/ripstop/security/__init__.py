"""Which addresses and folders a process may use, and what must not leave it."""


# Files of this machine: read with bounds, kept private, found in the places users expect.
