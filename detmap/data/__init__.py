"""What is scored, as columns: tables of ground truth and detections, ids, data frames and Arrow, notices."""
