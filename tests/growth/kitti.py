"""A format of files from outside of the package: KITTI's labels, a text file per image."""

from detmap import register
from detmap.formats import line_format

FORMAT = register(
    line_format(
        "kitti",
        ground_truth="{class} -1 -1 -10 {x1} {y1} {x2} {y2} -1 -1 -1 -1000 -1000 -1000 -10",
        detections="{class} -1 -1 -10 {x1} {y1} {x2} {y2} -1 -1 -1 -1000 -1000 -1000 -10 {score}",
        everywhere=["DontCare"],
    )
)
