"""A format of files from outside of the package: lines as KITTI's labels with a word more, a text file per image."""

from detmap import register
from detmap.formats import line_format

FORMAT = register(
    line_format(
        "street",
        ground_truth="{class} -1 -1 -10 {x1} {y1} {x2} {y2} -1 -1 -1 -1000 -1000 -1000 -10 0",
        detections="{class} -1 -1 -10 {x1} {y1} {x2} {y2} -1 -1 -1 -1000 -1000 -1000 -10 0 {score}",
        everywhere=["DontCare"],
    )
)
