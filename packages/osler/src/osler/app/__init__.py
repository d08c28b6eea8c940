"""What every interface offers: the work that one command or request asks for.

| Module | Does |
|---|---|
| `runs`, `run_files` | answers one question, keeps the run, replays it |
| `threads`, `follow_ups`, `changed` | conversations; what a follow-up asks; evidence that changed since |
| `estimates` | what answers may cost, before they are asked for |
| `danger` | the notice to people in danger |
| `watch`, `quarantine`, `unindexed` | a folder that is watched; documents that wait; vectors still to be made |
| `resolve`, `labeled_questions` | documents by identifier; files of questions |
| `audit`, `feedback`, `reach` | who asked what; what readers said; what a key may see |
| `doctor`, `probe` | checks settings, files and models; asks a model server what it can do |
"""
