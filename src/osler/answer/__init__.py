"""From evidence to an answer whose every statement opens its passage.

A strategy decides what to read and when to stop; a `Composer` turns what stands
in its memory into an `Answer`. Two exist: `WrittenComposer` takes a capable model's
words and attributes each sentence, `ExtractiveComposer` quotes.
"""
