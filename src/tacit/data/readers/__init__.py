"""One reader for each kind of file, behind one registry."""
