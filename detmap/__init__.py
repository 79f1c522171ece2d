"""detmap scores ranked predictions: object detections and retrieval rankings."""
