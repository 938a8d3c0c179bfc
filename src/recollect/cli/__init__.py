"""The command line: one thin file per verb."""

from __future__ import annotations


def main() -> None:
    """Run the `recollect` command; whatever happens, its status is 0, 1 (a limit was passed), 2 or 130."""
    import os
    import sys
    import warnings

    from recollect.cli.exit_status import COULD_NOT
    from recollect.cli.output_streams import flush_streams, repair_streams
    from recollect.errors import show_warning
    from recollect.printable import PrintableStream

    os.umask(os.umask(0) | 0o077)  # what libraries write for themselves is the owner's alone, too
    repair_streams()
    streams = sys.stdout, sys.stderr  # the parser of options puts others in their place when a reader is gone
    sys.stderr = PrintableStream(sys.stderr)  # warnings, and what libraries say of files that others wrote
    warnings.showwarning = show_warning
    status = _run()
    if sys.stdout is not streams[0]:
        status = COULD_NOT
    sys.exit(flush_streams(*streams, status=status))


def _run() -> int:
    """Run the command that was typed; its status."""
    import sys

    from recollect.cli.console import announce_torch, print_error
    from recollect.cli.exit_status import COULD_NOT, INTERRUPTED
    from recollect.cli.shortcuts import take_shortcut

    try:
        if take_shortcut(sys.argv[1:]):
            return 0
        from recollect.cli.app import app

        announce_torch()
        app(prog_name="recollect")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else COULD_NOT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output is gone
        return COULD_NOT
    except BaseException as error:  # before a verb could begin: an installed plug-in cannot be used
        from pathlib import Path

        from recollect.files import describe_fault

        print_error(str(describe_fault(error, [Path()])))
        return COULD_NOT
    return 0
