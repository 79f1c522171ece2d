"""Reading: opening files, streams and archives; scanning documents, lines and cells."""
