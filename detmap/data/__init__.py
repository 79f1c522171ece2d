"""Tables of ground truth and detections, ids, data frames and Arrow, notices."""
