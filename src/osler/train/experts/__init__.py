"""Training and evaluation of the experts that ship with Osler, or of a user's own.

| Module | Has |
|---|---|
| `pair_questions` | questions with texts that answer them and texts that do not, as published |
| `splits` | train, dev and test by document and question, written to disk as hashes |
| `hard_negatives` | wrong texts that lie near a question: neighbours by the packaged encoder |
| `pair_batches` | what one step of training reads |
| `pair_training` | the pair model with its last layers tuned, its loss and its loop |
| `answer_fit` | the linear models over its logits and the cues of `answers` |
| `pair_evaluation` | the pair model's figures beside the cosine's, and its calibration |
| `claims` | yes/no questions with their evidence, for `supports` |
| `searches` | searches with their gold documents, for `retrieve` |
| `letters` | letters of patients that name a page's subject, for `retrieve` |
| `query_map` | the map of queries, fitted against all passages at once |
| `evidence_cases` | searches with and without a question's subject, for `answerable` |
| `answerable_figures` | its figures beside the rules, and what its guarantee keeps |
| `folder` | what the jobs share: their folders, and the card that they write |
| `linear` | logistic regression, fitted here and run in plain numpy |

Only train questions are trained on, the dev part chooses and calibrates, and test only measures.
Running an expert is `osler.retrieve.experts`, which needs none of the extra `train`.
"""
