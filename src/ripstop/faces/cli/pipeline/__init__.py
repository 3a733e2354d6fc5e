"""Commands of the delivery pipeline."""
