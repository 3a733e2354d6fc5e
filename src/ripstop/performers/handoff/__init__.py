"""Hand-off documents: text files in a folder that many processes, people and their editors share."""
