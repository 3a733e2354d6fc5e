"""The pages of the web desk: each handler takes the site and a request."""
