"""The verbs that the server adds to `osler`; nothing is imported before one is used."""

from osler.cli.options import Verb, list_under, make_verbs

VERBS = {
    "kb": Verb(verbs=make_verbs("osler_serve.cli.patients", "patients", "record")),
    **list_under(
        "Ask",
        {
            "demo": Verb(
                "Fetch the models, build the sample texts, and open the page on an answered"
                " question.",
                "osler_serve.cli.demo:demo",
            ),
            "thread": Verb(
                "Show a conversation: each question, how it was searched for, and its answer; or"
                " list all.",
                "osler_serve.cli.threads:thread",
            ),
            "feedback": Verb(
                "List feedback on answers and cards, newest first; or export questions from it.",
                "osler_serve.cli.home:feedback",
            ),
        },
    ),
    **list_under(
        "Texts",
        {
            "forget": Verb(
                "Take a text, a document or a patient out of the knowledge base, its indexes and"
                " snapshots, of recorded runs, tapes, conversations, evaluations and caches."
                " Stop the server first.",
                "osler_serve.cli.home:forget",
            ),
        },
    ),
    **list_under(
        "Serve",
        {
            "serve": Verb(
                "Answer over HTTP: the native API, the OpenAI-compatible endpoint, and MCP.",
                "osler_serve.cli.serve:app",
            ),
            "mcp": Verb(
                "Speak the Model Context Protocol on standard input and output: read-only tools.",
                "osler_serve.cli.serve:mcp",
            ),
            "deploy": Verb(
                "Write files to run Osler as a service (container, systemd, compose, Kubernetes),"
                " or"
                " make one journey through a running server: `osler deploy check URL`.",
                "osler_serve.cli.serve:deploy",
            ),
            "audit": Verb(
                "Show the latest entries of the audit log, who asked what; verify it, or prove a"
                " run.",
                "osler_serve.cli.audit:audit",
            ),
            "backup": Verb(
                "Back up the home folder, without caches, and the settings into one file.",
                "osler_serve.cli.home:backup",
            ),
            "restore": Verb(
                "Restore a backup into an empty home.",
                "osler_serve.cli.home:restore",
            ),
        },
    ),
}
