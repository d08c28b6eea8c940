"""The verbs that the laboratory adds to `osler`; nothing is imported before one is used."""

from osler.cli.options import Verb, list_under, make_verbs

_EVAL = {
    **make_verbs("osler_lab.cli.evaluate_results", "judge", "agree"),
    **make_verbs("osler_lab.cli.evaluate", "run", "tasks"),
    **make_verbs("osler_lab.cli.evaluate_results", "report"),
}
_TRAIN = {
    **make_verbs("osler_lab.cli.train", "explore", "judge"),
    **make_verbs("osler_lab.cli.train_make", "make"),
    **make_verbs("osler_lab.cli.train_make", "thinker_data", "evaluate_data"),
    **make_verbs("osler_lab.cli.train_tune", "tune", "export"),
}
VERBS = {
    **list_under(
        "Measure",
        {
            "eval": Verb("Compare strategies on data sets.", verbs=_EVAL),
            "scoreboard": Verb(
                "Run every strategy of a plan on the same questions; with --out, make the page of"
                " the scores.",
                "osler_lab.cli.scoreboard:scoreboard",
            ),
            "calibrate": Verb(
                "Fit the least sureness of an answer, TC-RAG's sigma, or KAG-Thinker's tau.",
                "osler_lab.cli.studies:calibrate",
            ),
            "attack": Verb(
                "Attack TC-RAG's first tool call with noise, in six ways (TC-RAG App. 8.6).",
                "osler_lab.cli.studies:attack",
            ),
            "sigma": Verb(
                "Measure the effect of TC-RAG's threshold: halts, steps, tokens and EM over sigma"
                " (§6.5).",
                "osler_lab.cli.studies:sigma",
            ),
            "plans": Verb(
                "Measure source plans: accuracy without each source in turn, queries, words,"
                " diversity, cost.",
                "osler_lab.cli.studies:plans",
            ),
            "poison": Verb(
                "Plant wrong passages in a copy of the knowledge base, and count who cites them.",
                "osler_lab.cli.studies:poison",
            ),
            "inject": Verb(
                "Hide instructions in documents, and count the answers that obey them.",
                "osler_lab.cli.studies:inject",
            ),
        },
    ),
    **list_under(
        "Research",
        {
            "train": Verb("Make training data, and train models.", verbs=_TRAIN),
            "experts": Verb(
                "List the small trained models that decide instead of a rule; show, use or write"
                " one.",
                "osler_lab.cli.experts:experts",
            ),
        },
    ),
}
