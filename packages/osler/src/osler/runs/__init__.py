"""Runs: what was asked, found and answered, kept so that it can happen again.

| Module | Does |
|---|---|
| `answering` | answers one question, keeps the run, replays it |
| `files` | the folder of a run; evidence that changed since |
| `estimates` | what answers may cost, before they are asked for |
| `threads` | conversations, and follow-ups made to stand alone |
| `feedback` | what readers said of answers |
"""
