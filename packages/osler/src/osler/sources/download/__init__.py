"""Downloads of public corpora and ontologies: what, from where, under which licence.

| module     | holds                                                                       |
|------------|-----------------------------------------------------------------------------|
| `job`      | the recipes (`recipes.toml`), and one to one folder, two files at a time       |
| `transfer` | one file, resumable and checked                                             |

The steps of `DownloadJob.run`:

1. The licence must have been accepted (`--accept-licence`); recipes of sources that only the
   user may fetch (UMLS, SNOMED CT) say what to do instead, or take the user's own key from
   an environment variable.
2. The files are listed: fixed paths, an HTML index, a data set on the Hugging Face hub, or
   the releases of UMLS.
3. The disk must have room for the sizes that the listing states, else for the recipe's.
4. The files are fetched two at a time, each as `NAME.part` first. An interrupted download
   goes on where it stopped when the same command is run again.
5. Where the publisher gives a checksum (MD5 beside the file or in a list, SHA-256 on the
   hub), the file gets its name only when the sum is right.

`--mirror` replaces the base address of a recipe; the paths under it, and the publisher's
checksums, stay the same.

A new recipe is an entry in `recipes.toml`: `title`, `source` (the source that `osler kb add`
should put it under), `base`, the listing with its files or pattern, the licence and its
address, about how many bytes, and `confirmed`, the day on which the address was last seen to
be right.

Failures are values of the user's world: `LicenceNotAccepted`, `FetchFailed` (the server, the
network, the disk) and `SumMismatch`, each with a `fix`. What was fetched before a failure
stays on the disk, and the next run only checks it.

Addresses are printed and stored without their query, which may hold a key.

From Python:

    from pathlib import Path
    from osler.sources.download.job import DownloadJob
    from osler.sources.download.job import find_recipe

    result = DownloadJob(find_recipe("mesh"), Path("mesh")).run(accepted=True)
    print(result.files, result.bytes)
"""
