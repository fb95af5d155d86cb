"""`python -m graphsage` is the `graphsage` command."""

import sys

from graphsage.cli.main import main

sys.exit(main())
