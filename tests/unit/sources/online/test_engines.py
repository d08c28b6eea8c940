"""Wikipedia, PubMed, SearXNG and Bing, as their documentation says that they answer."""

from __future__ import annotations

from typing import Any

import pytest
from loopback import NamedHostRequest, NetworkFactory, serve_named_hosts, whole_reply

from osler.errors import SourceUnavailable
from osler.sources.online.client import ReplyLimits
from osler.sources.online.services import (
    PAGE,
    WORDS,
    BingService,
    MediaWikiService,
    PubMedService,
    SearxngService,
)

DAY = ", retrieved 2023-11-14"


def page(number: int, index: int, text: str | None, **more: Any) -> dict[str, Any]:
    told = {"pageid": number, "ns": 0, "title": f"Page {number}", "index": index, **more}
    url = f"https://en.wiki.test/wiki/Page_{number}"
    return {**told, "fullurl": url} | ({} if text is None else {"extract": text})


async def test_wikipedia_gives_introductions_in_the_order_of_the_search(
    lines: NetworkFactory,
) -> None:
    reply = {
        "batchcomplete": True,
        "continue": {"gsroffset": 3, "continue": "gsroffset||"},
        "query": {
            "pages": [
                page(7, 2, "Asthma is a disease of the airways."),
                page(5, 1, "Bronchitis is an inflammation."),
                page(9, 3, "May mean:", pageprops={"disambiguation": ""}),
                page(8, 4, ""),
            ]
        },
    }
    async with serve_named_hosts(lambda asked: whole_reply(reply)) as server:
        wiki = MediaWikiService(lines(), server.url_of("{language}.wiki.test", "/w/api.php"))
        first, second = await wiki.find("asthma", k=3)

    assert (first.title, second.title) == ("Page 5", "Page 7")
    assert second.sections[0].text == "Asthma is a disease of the airways."
    assert second.url == "https://en.wiki.test/wiki/Page_7"
    assert second.kind == f"Encyclopaedia article{DAY}"
    assert second.licence == "CC BY-SA 4.0"
    (asked,) = server.asked
    assert asked.host == "en.wiki.test"
    told = {"generator": "search", "gsrsearch": "asthma", "gsrlimit": "3", "exintro": "1"}
    assert told.items() <= asked.params.items()


async def test_whole_articles_come_one_by_one_until_none_is_left(lines: NetworkFactory) -> None:
    texts = {"0": 5, "1": 7}

    def answer(asked: NamedHostRequest) -> bytes:
        at = asked.params.get("excontinue", "0")
        pages = [
            page(n, i, "Intro.\n\n== Signs ==\nWheeze." if texts[at] == n else None)
            for i, n in enumerate((5, 7), 1)
        ]
        more = {"continue": {"excontinue": 1, "continue": "||info"}} if at == "0" else {}
        return whole_reply({**more, "query": {"pages": pages}})

    async with serve_named_hosts(answer) as server:
        url = server.url_of("{language}.wiki.test", "/w/api.php")
        found = await MediaWikiService(lines(), url, whole=True).find("asthma", k=2)

    assert [document.title for document in found] == ["Page 5", "Page 7"]
    assert [(s.path, s.text) for s in found[0].sections] == [
        ((), "Intro."),
        (("Signs",), "Wheeze."),
    ]
    assert [asked.params.get("excontinue") for asked in server.asked] == [None, "1"]
    assert "exintro" not in server.asked[0].params


async def test_a_chinese_query_goes_to_the_chinese_wiki(lines: NetworkFactory) -> None:
    async with serve_named_hosts(
        lambda asked: whole_reply({"query": {"pages": [page(1, 1, "哮喘。")]}})
    ) as server:
        url = server.url_of("{language}.wiki.test", "/w/api.php")
        (document,) = await MediaWikiService(lines(), url).find("哮喘的治疗", k=1)
    assert server.asked[0].host == "zh.wiki.test"
    assert server.asked[0].params["variant"] == "zh-cn"
    assert document.language == "zh"


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (whole_reply({"error": {"code": "maxlag", "info": "Waiting for db"}}), "maxlag: Waiting"),
        (whole_reply("{broken"), "no JSON"),
        (whole_reply([1]), "no JSON object"),
        (whole_reply("x", kind="text/html"), "text/html"),
    ],
)
async def test_what_is_no_answer_of_a_wiki_is_a_source_that_is_down(
    reply: bytes, why: str, lines: NetworkFactory
) -> None:
    async with serve_named_hosts(lambda asked: reply) as server:
        wiki = MediaWikiService(lines(), server.url_of("en.wiki.test"))
        for asked in (1, 2):  # it is not kept for a month
            with pytest.raises(SourceUnavailable, match=why):
                await wiki.find("asthma", k=1)
            assert len(server.asked) == asked


async def test_a_wiki_that_knows_nothing_gives_nothing(lines: NetworkFactory) -> None:
    async with serve_named_hosts(lambda asked: whole_reply({"batchcomplete": True})) as server:
        wiki = MediaWikiService(lines(), server.url_of("en.wiki.test"))
        assert await wiki.find("asthma", k=1) == []
        assert await wiki.find("  ", k=1) == []
    assert len(server.asked) == 1


def article(number: int) -> str:
    return (
        f"<PubmedArticle><MedlineCitation><PMID>{number}</PMID><Article><Journal><JournalIssue>"
        "<PubDate><Year>2020</Year></PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>Title {number}</ArticleTitle><Abstract><AbstractText>Text {number}."
        "</AbstractText></Abstract></Article></MedlineCitation></PubmedArticle>"
    )


FOUND = {
    "header": {"type": "esearch", "version": "0.3"},
    "esearchresult": {
        "count": "2",
        "retmax": "2",
        "querykey": "1",
        "webenv": "MCID_x",
        "idlist": ["22", "11"],
    },
}


def pubmed(asked: NamedHostRequest) -> bytes:
    if asked.path.endswith("esearch.fcgi"):
        return whole_reply(FOUND)
    records = f"<PubmedArticleSet>{article(11)}{article(22)}</PubmedArticleSet>"
    return whole_reply(f'<?xml version="1.0"?>{records}', kind="text/xml; charset=UTF-8")


async def test_pubmed_is_searched_on_the_history_server_in_the_order_of_relevance(
    lines: NetworkFactory,
) -> None:
    async with serve_named_hosts(pubmed) as server:
        net = lines()
        engine = PubMedService(net, "me@example.org", "k3y", server.url_of("ncbi.test", "/eutils"))
        found = await engine.find("asthma", k=2)

    assert [(d.code, d.title, d.year) for d in found] == [
        ("PMID:22", "Title 22", 2020),
        ("PMID:11", "Title 11", 2020),
    ]
    search, fetch = server.asked
    about = {"tool": "osler", "email": "me@example.org", "api_key": "k3y", "db": "pubmed"}
    assert about.items() <= search.params.items()
    assert search.params["usehistory"] == "y"
    wanted = {"WebEnv": "MCID_x", "query_key": "1", "retstart": "0", "retmax": "2"}
    assert wanted.items() <= fetch.params.items()
    assert "id" not in fetch.params


async def test_a_search_from_the_cache_asks_for_records_by_number_and_offline_for_nothing(
    lines: NetworkFactory,
) -> None:
    """The history server forgets within hours, the cache within days."""
    async with serve_named_hosts(pubmed) as server:
        url = server.url_of("ncbi.test", "/eutils")
        await PubMedService(lines(), url=url).find("asthma", k=2)
        lines.time.now += 7_200
        assert len(await PubMedService(lines(offline=True), url=url).find("asthma", k=2)) == 2
        assert len(server.asked) == 2


@pytest.mark.parametrize(("key", "seconds"), [(None, 1 / 3), ("k3y", 1 / 10)])
async def test_pubmed_is_called_as_often_as_it_allows(
    key: str | None, seconds: float, lines: NetworkFactory
) -> None:
    async with serve_named_hosts(pubmed) as server:
        engine = PubMedService(lines(), api_key=key, url=server.url_of("ncbi.test", "/eutils"))
        for query in ("a", "b"):
            await engine.find(query, k=2)
    # The records of both searches are the same: three calls.
    assert len(server.asked) == 3
    assert lines.time.slept == pytest.approx([seconds, seconds])


LOST = "<eFetchResult><ERROR>Unable to obtain query #1</ERROR></eFetchResult>"


@pytest.mark.parametrize(
    ("search", "fetch", "why"),
    [
        (whole_reply({"esearchresult": {"ERROR": "Invalid query"}}), b"", "Invalid query"),
        (whole_reply({"error": "API key invalid"}, 400), b"", "answers 400"),
        (whole_reply({"error": "no such db"}), b"", "no search result: no such db"),
        (whole_reply(FOUND), whole_reply("<PubmedArticleSet><Pub", kind="text/xml"), "broken XML"),
        (whole_reply(FOUND), whole_reply({"error": "x"}), "sends application/json"),
        (whole_reply(FOUND), whole_reply(LOST, kind="text/xml"), "Unable to obtain query"),
    ],
)
async def test_what_is_no_answer_of_pubmed_is_a_source_that_is_down(
    search: bytes, fetch: bytes, why: str, lines: NetworkFactory
) -> None:
    async with serve_named_hosts(
        lambda asked: search if "esearch" in asked.path else fetch
    ) as server:
        engine = PubMedService(lines(), url=server.url_of("ncbi.test"))
        with pytest.raises(SourceUnavailable, match=why):
            await engine.find("asthma", k=2)


async def test_pubmed_without_a_record_is_asked_for_none(lines: NetworkFactory) -> None:
    empty = {"esearchresult": {"count": "0", "idlist": [], "webenv": "x", "querykey": "1"}}
    async with serve_named_hosts(lambda asked: whole_reply(empty)) as server:
        assert await PubMedService(lines(), url=server.url_of("ncbi.test")).find("zzz", k=5) == []
    assert len(server.asked) == 1


HTML = "<!doctype html><title>Asthma guide</title><body><nav>Menu</nav><h1>Asthma</h1><p>{}</p>"


def searx(asked: NamedHostRequest) -> bytes:
    if asked.path == "/search":
        results = [
            {
                "url": f"http://searx.test:{asked.headers['host'].split(':')[1]}/page",
                "title": "A",
                "content": "Asthma words.",
                "engine": "x",
                "score": 2.0,
            },
            {"url": "http://169.254.169.254/latest", "title": "Evil", "content": "Come in."},
            {"url": "ftp://searx.test/x", "title": "Old", "content": "No."},
            {"url": "http://searx.test/empty", "title": "None", "content": ""},
        ]
        return whole_reply({"query": "q", "results": results, "unresponsive_engines": []})
    return whole_reply(HTML.format("Whole text."), kind="text/html; charset=utf-8")


async def test_searxng_gives_words_or_whole_pages_and_never_calls_into_the_network(
    lines: NetworkFactory,
) -> None:
    async with serve_named_hosts(searx) as server:
        words = await SearxngService(lines(), server.url_of("searx.test")).find("asthma", k=5)
        whole = await SearxngService(lines(), server.url_of("searx.test"), pages=True).find(
            "asthma", k=5
        )

    assert [d.title for d in words] == ["A", "Evil"]
    assert {d.kind for d in words} == {f"{WORDS}{DAY}"}
    assert "Whole text." in whole[0].sections[-1].text
    assert (whole[0].id, whole[0].url, whole[0].kind) == (words[0].id, words[0].url, f"{PAGE}{DAY}")
    # The address of the machine's own metadata was found, and not called.
    assert whole[1] == words[1]
    assert server.asked[0].params == {"q": "asthma", "format": "json", "language": "en"}


async def test_a_searxng_that_gives_no_json_says_what_to_set(lines: NetworkFactory) -> None:
    async with serve_named_hosts(lambda asked: whole_reply("no", 403, kind="text/html")) as server:
        with pytest.raises(SourceUnavailable, match=r"search\.formats"):
            await SearxngService(lines(), server.url_of("searx.test")).find("asthma", k=1)


async def test_a_searxng_whose_engines_are_all_silent_is_down_not_empty(
    lines: NetworkFactory,
) -> None:
    silent = {"results": [], "unresponsive_engines": [["google", "timeout"]]}
    async with serve_named_hosts(lambda asked: whole_reply(silent)) as server:
        with pytest.raises(SourceUnavailable, match="do not respond"):
            await SearxngService(lines(), server.url_of("searx.test")).find("asthma", k=1)


async def test_bing_s_form_is_asked_with_a_key_in_the_header(lines: NetworkFactory) -> None:
    pages = {"value": [{"name": "A", "url": "https://a.example/", "snippet": "Words."}] * 2}
    async with serve_named_hosts(
        lambda asked: whole_reply({"_type": "SearchResponse", "webPages": pages})
    ) as server:
        engine = BingService(lines(), server.url_of("bing.test", "/v7.0/search"), "k3y")
        (document,) = await engine.find("asthma", k=5)

    assert (document.title, document.url) == ("A", "https://a.example/")
    (asked,) = server.asked
    assert asked.headers["ocp-apim-subscription-key"] == "k3y"
    assert (asked.params["count"], asked.params["mkt"]) == ("5", "en-US")


async def test_an_error_of_bing_is_told_without_the_key(lines: NetworkFactory) -> None:
    error = {"_type": "ErrorResponse", "errors": [{"code": "InvalidRequest", "message": "Bad mkt"}]}
    async with serve_named_hosts(lambda asked: whole_reply(error)) as server:
        with pytest.raises(SourceUnavailable, match="Bad mkt") as caught:
            await BingService(lines(), server.url_of("bing.test"), "k3y").find("asthma", k=1)
    assert "k3y" not in str(caught.value)


async def test_a_page_that_is_too_large_or_stalls_leaves_the_words(lines: NetworkFactory) -> None:
    def answer(asked: NamedHostRequest) -> bytes | None:
        if asked.path == "/search":
            at = f"http://searx.test:{asked.headers['host'].split(':')[1]}"
            results = [{"url": f"{at}/{n}", "title": n, "content": n} for n in ("big", "slow")]
            return whole_reply({"results": results})
        return (
            whole_reply(HTML.format("x" * 9_000), kind="text/html") if "big" in asked.path else None
        )

    async with serve_named_hosts(answer) as server:
        net = lines(bounds=ReplyLimits(bytes=5_000, seconds=0.3))
        found = await SearxngService(net, server.url_of("searx.test"), pages=True).find(
            "asthma", k=5
        )
    assert [d.sections[0].text for d in found] == ["big", "slow"]
    assert all(d.kind.startswith(WORDS) for d in found)
