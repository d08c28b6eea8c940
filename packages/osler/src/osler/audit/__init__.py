"""The audit log: who asked what of which source, with which model, and what was shown.

| Module | Holds |
|---|---|
| `checkpoints` | the hash tree of RFC 6962, inclusion proofs, signed tree heads (Ed25519) |
| `heads` | the last checkpoint on disk: beside the log, and in its anchors |
| `log` | the file of entries: append, read, verify |
| `entries` | what an entry says, and the proof of a run |
"""
