"""Measures with exact definitions; each is held to an independent implementation by a test.

| Measure | Function | As defined by |
|---|---|---|
| exact set of options | `choice.is_exact_choice` | TC-RAG App. 8.5 |
| standard error of accuracy | `choice.standard_error` | MIRAGE |
| leaderboard average | `choice.leaderboard` | CMB; TC-RAG Table 4 |
| exact match | `overlap.exact_match` | SQuAD |
| F1 of tokens | `overlap.f1` | SQuAD; KAG's evaUtils |
| BLEU | `overlap.bleu` | sacrebleu |
| BLEU of TC-RAG's code | `overlap.paper_bleu` | TC-RAG's `utils.py` |
| ROUGE-L | `overlap.rouge_l` | rouge-score, with its tokenizer and defaults |
| ROUGE-R | `overlap.rouge_r` | TC-RAG App. 8.5 |
| recall@k | `retrieval.recall_at` | trec_eval |
| reciprocal rank | `retrieval.reciprocal_rank` | trec_eval |
| nDCG | `retrieval.ndcg` | trec_eval |
| support of a citation | `retrieval.rests_on` | ours |
| precision of citations | `retrieval.precision` | ours |
| calibration error | `choice.calibration_error` | ten bins of equal width |
| LUQ | `choice.luq` | Omni-RAG A.3 |
| query diversity | `choice.query_diversity` | Omni-RAG Eq. 5 |
| agreement with people | `choice.agreement` | Omni-RAG A.2 |
| relative drop | `choice.relative_drop` | Omni-RAG Table 6 |
| rubric of long answers | `judges.read_ratings` | Omni-RAG A.4 |

Conventions: scores lie in 0 to 1 and are shown times 100; 0/0 counts as 0 unless the function says
otherwise; a function raises `ValueError` where a measure has no meaning (no samples, no gold), so
that no number is ever made up.

Exact match and F1 compare SQuAD's normal form (`overlap.normalise_answer`): lower case, NFKC, no
punctuation, no English articles. BLEU and ROUGE keep articles and cut words as their reference
implementations do (`overlap`). A Han character is a token of its own in all of them, so that
Chinese answers need no word segmenter and figures do not depend on one.

A measure that needs a model (entailment, correctness, marks) takes the model's verdicts as
numbers: who judges is `osler_lab.evaluate.judges`' matter, and the definition stays testable.
"""
