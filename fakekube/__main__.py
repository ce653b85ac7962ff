"""`python -m fakekube`: the same as the command `fakekube`."""

from __future__ import annotations

import sys

from fakekube.cli import main

sys.exit(main())
