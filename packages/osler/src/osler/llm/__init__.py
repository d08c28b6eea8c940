"""Language models: what they are to Osler, and the engines behind them.

    core/           the Protocols and everything that holds for every model
      base.py         `LanguageModel`, `Likelihood`, `BatchLikelihood`, `Attentive`
      ask.py          the calls that are paid for, traced, and repaired where they do not parse;
                      a model in one role of a method, with its decoding settings
      grammar/        formats of replies, as GBNF, JSON schema or matcher
      thinking.py     the split between a reasoning model's thoughts and its reply
      spans.py        the answer's place in a reply, and the least probability in it
      cache.py        files that are downloaded or derived once, and their hashes
    local/          llama.cpp in this process, its scoring in batches, the packaged weights and
                    their requantisation
    server/         any server that speaks the OpenAI interface, and the differences between them
    transformers/   torch models: the only ones that show attention and can be trained
    recording/      tapes that runs are replayed from

A capability is a Protocol, not a flag. A method that needs to score texts asks for a
`Likelihood`; a model that cannot score does not implement it, and `osler.build` says so before
the run begins.

Four rules hold in every engine, and the kits in `tests/support/conformance.py` check them:

* log-probabilities are the raw model's, before grammar and temperature, in nats;
* a last message of the assistant's is continued in place;
* a grammar is enforced or refused with `CapabilityMissing`, never ignored;
* a call that is cancelled stops in the engine too, and its cost is still counted.

Nothing in this package reads settings: `osler.build` chooses an engine and hands in
what it needs. Heavy packages (xllamacpp, torch, transformers, gguf) are imported by the
function that uses them, so that importing this package costs nothing.

Errors are those of `osler.errors`: `ModelMissing` for weights that are not there,
`ModelUnreachable` for a server that does not answer, `ModelError` for a model that fails,
`CapabilityMissing` for what an engine cannot do, `MalformedOutput` for a reply that does not
parse after its repairs. Each says what to do about it.
"""
