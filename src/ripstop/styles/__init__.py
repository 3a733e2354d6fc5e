"""Ways of working together: pure deciders on one kernel."""
