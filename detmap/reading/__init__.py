"""From bytes to records: opening files, streams and archives, recognising, scanning documents, lines and cells."""
