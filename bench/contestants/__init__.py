"""One module per contestant, run as `python -m contestants.NAME MEASURE FOLDER ARGUMENTS`."""
