"""The page for a person's own device, as a folder of files or from a small server."""
