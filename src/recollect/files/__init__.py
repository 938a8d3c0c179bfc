"""Files that hold private data: whole or not at all, readable by their owner only, one writer at a time."""

from recollect.files.atomic_writes import (
    fill_folder,
    is_leftover,
    make_private_folder,
    make_scratch_folder,
    read_json,
    remove_leftovers,
    write_atomically,
    write_json,
    write_text,
)
from recollect.files.checksums import (
    FileFault,
    add_checksum,
    compute_sha256,
    find_faults,
    read_checked_json,
    read_folder_manifest,
    remove_checksum,
    write_checked_json,
    write_folder_manifest,
)
from recollect.files.journal import Journal
from recollect.files.leases import hold_lease
from recollect.files.locks import LOCK, hold_lock, is_locked, leave_locks_to_driver, refuse_use, use_folder
from recollect.files.ownership import refuse_foreign_folder
from recollect.files.tracebacks import describe_fault, is_interruption

__all__ = [
    "LOCK",
    "FileFault",
    "Journal",
    "add_checksum",
    "compute_sha256",
    "describe_fault",
    "fill_folder",
    "find_faults",
    "hold_lease",
    "hold_lock",
    "is_interruption",
    "is_leftover",
    "is_locked",
    "leave_locks_to_driver",
    "make_private_folder",
    "make_scratch_folder",
    "read_checked_json",
    "read_folder_manifest",
    "read_json",
    "refuse_foreign_folder",
    "refuse_use",
    "remove_checksum",
    "remove_leftovers",
    "use_folder",
    "write_atomically",
    "write_checked_json",
    "write_folder_manifest",
    "write_json",
    "write_text",
]
