"""`pairscale COMMAND ...`, which is `python -m MODULE ...` from any folder, whatever files lie there."""

from __future__ import annotations

import runpy
import sys

from pairscale import COMMANDS, ROOT

USAGE = "\n".join(
    [
        "pairscale COMMAND [group=name] [key=value]",
        "",
        *(f"  pairscale {command:<18} python -m {module}" for command, module in COMMANDS.items()),
        "",
        "pairscale COMMAND --help shows what a command does, with examples.",
    ]
)


def main() -> None:
    """Run the command that the first word names; its exit code is the command's. Without one print those there are."""
    words = sys.argv[1:]
    if words[:1] in ([], ["--help"], ["-h"]):
        print(USAGE)
        sys.exit(0 if words else 2)
    if words[0] not in COMMANDS:
        print(f"pairscale {words[0]}: no such command; available: {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    if not sys.flags.safe_path:
        del sys.path[0]  # the current folder, or that of the console script
    sys.path.insert(0, str(ROOT))
    module = COMMANDS[words[0]]
    sys.argv = [module, *words[1:]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
