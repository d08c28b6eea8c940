"""Doors for record systems: CDS Hooks 2.0.1 when a chart is opened or a drug is ordered, and SMART
App Launch for its users.

| Module | Holds |
|---|---|
| `hook_wire` | requests, cards and feedback, as the specification has them |
| `chart` | the facts of a request's FHIR resources |
| `checks`, `rules.toml` | the three checks; rules, each with the sentence that it quotes |
| `cards` | findings as cards, with what they cite |
| `hook_tokens` | the signed statements of record systems |
| `outside` | replies of record systems, their public keys, what a request did not bring |
| `endpoints` | discovery, services and feedback |
| `launch_flow` | SMART App Launch: from a record system's menu to the record |
| `launch_sessions` | who has which patient open |
| `records` | patients' records: readers, codes, similar patients |
| `identifiers` | texts without what identifies a person |
| `launch_page` | `/launch`, and what a launched user has open |

For hooks no model is asked: a card consists of facts of the record, a computed number and a quoted
sentence.
"""
