"""How people and programs meet ripstop: command line, web desk, HTTP. What belongs to one style is in its room."""
