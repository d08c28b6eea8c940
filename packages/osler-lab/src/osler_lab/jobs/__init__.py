"""Resumable jobs whose folder is the checkpoint, shared by any number of processes and hosts.

| Module | Holds |
|---|---|
| `claims` | who works on which batch: a file that expires |
| `journal` | append-only JSON Lines, one file a writer, and what others added since |
| `runner` | the one loop: claim a batch, try what is due in it, release it, until nothing is left |

Evaluation, training data and teaching are three kinds of `Work` for one `JobRunner`.
"""
