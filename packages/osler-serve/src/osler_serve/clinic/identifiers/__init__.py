"""Finds what identifies a person in a clinical text, by rules and a tagger, and takes it out.

| Module | Holds |
|---|---|
| `found` | the spans, how overlapping ones are settled, and the words of other texts |
| `english`, `chinese` | the rules of one language; those of both are in `removal` |
| `english_names`, `chinese` | names by the word itself and what stands on both sides |
| `places` | hospitals, schools, employers, wards and streets by their names |
| `tagger` | names by trained weights, from the words, their neighbours and what the rules say |
| `removal` | the text without them: marks in their place, dates moved |

What they find and miss: docs/guide/security.md.
"""
