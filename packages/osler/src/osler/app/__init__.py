"""What every interface offers: the work that one command or request asks for.

| Module | Does |
|---|---|
| `runs`, `run_files` | answers one question, keeps the run, replays it |
| `threads`, `follow_ups`, `changed` | conversations; follow-ups; evidence that changed |
| `estimates` | what answers may cost, before they are asked for |
| `danger` | the notice to people in danger |
| `watch`, `quarantine`, `unindexed` | a watched folder; what waits; vectors to come |
| `resolve`, `labeled_questions` | documents by identifier; files of questions |
| `audit`, `feedback`, `reach` | who asked what; what readers said; what a key may see |
| `doctor`, `probe` | checks settings, files and models; asks a model server what it can do |
"""
