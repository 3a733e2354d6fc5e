"""Files of this machine: read with bounds, kept private, found in the places users expect."""
