"""Training and evaluation of the experts that ship with Osler, or of a user's own.

| Module | Has |
|---|---|
| `pair_questions` | questions with texts that answer them and texts that do not, as published |
| `splits` | train, dev and test by document and question, written to disk as hashes |
| `judge_cases` | questions with sentences that were read and labelled, for `judge` |
| `judge_voices` | one question in other voices: misspelt, with a greeting, by a lay word |
| `judge_batches` | what one step of training reads |
| `unlabelled` | questions that nobody labelled, with what a search found |
| `row_losses` | what the scores of a step should be: by labels, and by a teacher |
| `tuned_models` | encoders in torch whose layers are tuned |
| `row_training` | the loop, which goes on where it was stopped |
| `judge_training`, `match_training` | the two small models |
| `teacher` | the larger model that both learn from, and its scores |
| `claims` | yes/no questions with their evidence, for `supports` |
| `searches` | searches with their gold documents, and the corpus that they search |
| `folder` | what the jobs share: their folders, and the card that they write |
| `linear` | logistic regression, fitted here and run in plain numpy |

Only train questions are trained on, the dev part chooses and calibrates, and test only measures.
Running an expert is `osler.retrieve.experts`, which needs none of the extra `train`.
"""
