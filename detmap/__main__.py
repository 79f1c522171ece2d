"""``python -m detmap``."""

from detmap.cli import main

raise SystemExit(main())
