"""What the pages of docs/integrations show is what is printed."""

from __future__ import annotations

import executed
import pytest

from detmap import Patch

PAGES = sorted((executed.ROOT / "docs/integrations").glob("*.md"))

#: What a page needs besides PyTorch.
NEEDED = {
    "pytorch_metric_learning": ("pytorch_metric_learning", "faiss"),
    "sentence_transformers": ("sentence_transformers",),
    "rfdetr": ("rfdetr", "pytorch_lightning", "torchmetrics"),
    "torchmetrics": ("torchmetrics", "torchvision"),
}


@pytest.fixture(autouse=True)
def made(monkeypatch):
    """Undo the patches that a page leaves."""
    patches, begin = [], Patch.__init__

    def noted(self, *given):
        patches.append(self)
        begin(self, *given)

    monkeypatch.setattr(Patch, "__init__", noted)
    yield
    for patch in patches:
        patch.undo()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page(page, tmp_path, monkeypatch):
    for name in NEEDED.get(page.stem, ()):
        pytest.importorskip(name)
    (tmp_path / "fixtures").symlink_to(executed.ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    executed.run(page)
