"""Names of table columns, shared by CSV, data frames and Arrow."""

from __future__ import annotations

import re

#: Alternative titles of each column, in lower case without punctuation. The keys are the roles of the columns, which
#: are recognised as titles, too.
COLUMNS: dict[str, tuple[str, ...]] = {
    "image_id": ("imgid",),
    "image": ("img", "filename", "file", "imagename"),
    "category_id": ("classid", "labelid", "catid"),
    "category": ("class", "label", "classname", "categoryname", "labelname", "name"),
    "score": ("confidence", "conf", "scores", "probability"),
    "x": ("left",),
    "y": ("top",),
    "width": ("w", "boxwidth", "bboxwidth"),
    "height": ("h", "boxheight", "bboxheight"),
    "x1": ("xmin",),
    "y1": ("ymin",),
    "x2": ("xmax", "right"),
    "y2": ("ymax", "bottom"),
    "cx": ("xcenter", "centerx", "xc"),
    "cy": ("ycenter", "centery", "yc"),
    "area": (),
    "crowd": ("iscrowd",),
    "difficult": ("ignore",),
    "group_of": ("isgroupof",),
    "image_width": (),
    "image_height": (),
}
_KNOWN = {alias: name for name, others in COLUMNS.items() for alias in (name.replace("_", ""), *others)}

#: The sets of columns that define a box, by box format. The columns x and y also combine with x2 and y2, and the
#: columns x1 and y1 with a width and height.
BOXES = {
    "xyxy": (("x1", "y1", "x2", "y2"), ("x", "y", "x2", "y2")),
    "xywh": (("x", "y", "width", "height"), ("x1", "y1", "width", "height")),
    "cxcywh": (("cx", "cy", "width", "height"),),
}


def role_of_title(title: str) -> str | None:
    """Return the role (key of `COLUMNS`) of the column with this title; None if unknown."""
    return _KNOWN.get(re.sub(r"[^a-z0-9]", "", title.lower()))
