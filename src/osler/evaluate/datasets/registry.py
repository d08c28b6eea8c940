"""Every data set by name: its files, its reader, where it is published, under which terms."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from osler.errors import BadConfig
from osler.evaluate.datasets import chinese, choice, clinical, longform, opendomain
from osler.evaluate.datasets.base import DataSet, Loaded, each, json_records

_RECORDS = each(json_records)

_MMLU = tuple(
    f"mmlu_med/{subject}_test.csv"
    for subject in (
        "anatomy",
        "clinical_knowledge",
        "college_biology",
        "college_medicine",
        "medical_genetics",
        "professional_medicine",
    )
)
_MIRAGE = "github.com/Teddy-XiongGZ/MIRAGE"
_MIT, _APACHE, _UNSTATED = "MIT", "Apache-2.0", "not stated"
_SHARE = "CC BY-SA"


def _choices() -> tuple[DataSet, ...]:
    return (
        DataSet(
            "medqa-us",
            "USMLE questions with four options, test split",
            "choice",
            ("medqa_us/phrases_no_exclude_test.jsonl", "medqa_us/mirage_ids.txt"),
            choice.medqa_rows,
            choice.medqa,
            "github.com/jind11/MedQA",
            _MIT,
        ),
        DataSet(
            "medqa-zh",
            "Chinese licensing questions with four options, test split",
            "choice",
            ("medqa_zh/test.jsonl",),
            choice.medqa_rows,
            choice.medqa,
            "github.com/jind11/MedQA",
            _MIT,
            "zh",
        ),
        DataSet(
            "medmcqa",
            "Indian entrance examinations, validation split",
            "choice",
            ("medmcqa/dev.json",),
            _RECORDS,
            choice.medmcqa,
            "github.com/MedMCQA/MedMCQA",
            _MIT,
        ),
        DataSet(
            "mmlu-med",
            "six medical subjects of MMLU, test split",
            "choice",
            _MMLU,
            choice.mmlu_rows,
            choice.mmlu,
            "github.com/hendrycks/test",
            _MIT,
        ),
        DataSet(
            "pubmedqa",
            "questions answered by one abstract: yes, no, maybe; the 500 of the test",
            "choice",
            ("pubmedqa/test_set.json", "pubmedqa/test_ground_truth.json"),
            choice.pubmedqa_rows,
            choice.pubmedqa,
            "github.com/pubmedqa/pubmedqa",
            _MIT,
        ),
        DataSet(
            "pubmedqa-rest",
            "the other labelled questions of PubMedQA",
            "choice",
            ("pubmedqa/ori_pqal_rest.json",),
            choice.pubmedqa_rows,
            choice.pubmedqa,
            "github.com/pubmedqa/pubmedqa",
            _MIT,
        ),
        _bioasq(
            "bioasq", "yes/no questions of experts", "yesno", "bioasq/bioasq_yesno_golden.json"
        ),
    )


def _bioasq(name: str, about: str, kind: str, file: str) -> DataSet:
    return DataSet(
        name,
        about,
        {"yesno": "choice", "summary": "long"}.get(kind, "short"),  # type: ignore[arg-type]
        (file,),
        choice.bioasq_rows(kind),
        choice.bioasq,
        _MIRAGE,
        "CC BY 2.5",
    )


_BIOASQ_OTHER = "bioasq/bioasq_other_golden.json"


def _exam(name: str, about: str, *files: str, licence: str = _APACHE, origin: str = "") -> DataSet:
    return DataSet(
        name,
        about,
        "choices",
        files,
        chinese.exam_rows,
        chinese.exam,
        origin or "github.com/FreedomIntelligence/CMB",
        licence,
        "zh",
    )


def _chinese() -> tuple[DataSet, ...]:
    cmb, sama = "github.com/FreedomIntelligence/CMB", "github.com/Artessay/SAMA"
    return (
        _exam("cmb-exam", "4,000 questions of CMB, as TC-RAG drew them", "cmb_exam/CMB-4000.json"),
        _exam("cmb-exam-500", "500 of them", "cmb_exam/CMB-500.json"),
        _exam(
            "cmb-exam-test",
            "the official test questions with their key",
            "cmb_exam/CMB-test-choice-question-merge.json",
            "cmb_exam/CMB-test-choice-answer.json",
        ),
        _exam(
            "mmcu-medical",
            "the medical part of MMCU",
            "mmcu_medical/MMCU_test.json",
            licence=_UNSTATED,
            origin=sama,
        ),
        DataSet(
            "cmb-clin",
            "questions about clinical cases, as TC-RAG has them",
            "long",
            ("cmb_clin/CMB-Clin.json",),
            _RECORDS,
            chinese.clinical,
            cmb,
            _APACHE,
            "zh",
        ),
        DataSet(
            "cmb-clin-native",
            "the same in CMB's own nested form",
            "long",
            ("cmb_clin/CMB-Clin-qa.json",),
            chinese.native_clinical_rows,
            chinese.clinical,
            cmb,
            _APACHE,
            "zh",
        ),
    )


def _omnirag(part: str) -> DataSet:
    return DataSet(
        f"omnirag-long-{part}",
        f"LiveQA, MedicationQA and ExpertQA-Biomed as Omni-RAG has them, {part} split",
        "long",
        (f"omnirag_long/{part}_long.json",),
        longform.records,
        longform.omnirag,
        "github.com/Jack-ZC8/Omni-RAG-Medical",
        _APACHE,
    )


def _long() -> tuple[DataSet, ...]:
    liveqa = "github.com/abachaa/LiveQA_MedicalTask_TREC2017"
    return (
        _bioasq("bioasq-summary", "questions for a summary", "summary", _BIOASQ_OTHER),
        DataSet(
            "liveqa",
            "consumers' questions with reference answers (TREC 2017)",
            "long",
            ("liveqa/TREC-2017-LiveQA-Medical-Test-Questions-w-summaries.xml",),
            longform.liveqa_rows,
            longform.liveqa,
            liveqa,
            _UNSTATED,
        ),
        DataSet(
            "liveqa-plain",
            "the same, from the file without summaries",
            "long",
            ("liveqa/TREC-2017-LiveQA-Medical-Test.xml",),
            longform.liveqa_rows,
            longform.liveqa,
            liveqa,
            _UNSTATED,
        ),
        DataSet(
            "medicationqa",
            "consumers' questions about drugs (MedInfo 2019)",
            "long",
            ("medicationqa/MedInfo2019-QA-Medications.xlsx",),
            longform.medication_rows,
            longform.medication,
            "github.com/abachaa/Medication_QA_MedInfo2019",
            _UNSTATED,
        ),
        DataSet(
            "expertqa-biomed",
            "experts' questions with answers that experts revised",
            "long",
            ("expertqa/lfqa_biomed.jsonl",),
            _RECORDS,
            longform.expert,
            "github.com/chaitanyamalaviya/ExpertQA",
            _MIT,
        ),
        DataSet(
            "expertqa-questions",
            "all biomedical questions of ExpertQA, without answers",
            "long",
            ("expertqa/r1_data_anon_biomed.jsonl",),
            _RECORDS,
            longform.expert,
            "github.com/chaitanyamalaviya/ExpertQA",
            _MIT,
            graded=False,
        ),
        *(_omnirag(part) for part in ("train", "dev", "test")),
    )


def _clinical() -> tuple[DataSet, ...]:
    ddx, bench = "figshare.com/articles/dataset/DDXPlus_Dataset/20043374", "MedS-Bench"
    stays = ("mimic_iv_ed/edstays.csv.gz", "mimic_iv_ed/triage.csv.gz")
    own = "PhysioNet credentialed; the files are the user's"

    def ddxplus(name: str, language: str) -> DataSet:
        return DataSet(
            name,
            "patients with one of 49 conditions, as published",
            "choice",
            tuple(
                f"ddxplus/{file}"
                for file in (
                    f"patients_{language}.csv",
                    f"release_evidences_{language}.json",
                    f"release_conditions_{language}.json",
                )
            ),
            clinical.ddxplus_rows,
            clinical.ddxplus,
            ddx,
            "CC BY 4.0",
        )

    def instances(name: str, about: str, file: str, terms: str) -> DataSet:
        return DataSet(
            name,
            about,
            "choice",
            (file,),
            clinical.medsbench_rows,
            clinical.medsbench,
            bench,
            terms,
        )

    return (
        ddxplus("ddxplus", "en"),
        ddxplus("ddxplus-fr", "fr"),
        instances(
            "ddxplus-medsbench",
            "DDXPlus as MedS-Bench's task 130",
            "ddxplus/ddxplus_medsbench.json",
            _SHARE,
        ),
        DataSet(
            "ddxplus-omnirag",
            "DDXPlus as Omni-RAG has it, 50 options",
            "choice",
            ("ddxplus/ddxplus_omnirag_short.json",),
            longform.records,
            longform.omnirag,
            "github.com/Jack-ZC8/Omni-RAG-Medical",
            "CC BY 4.0",
        ),
        instances("seer", "treatment of cancer, as task 131", "seer/task131.json", own),
        DataSet(
            "mimic-ed-admission",
            "whether a patient of the emergency department is admitted",
            "choice",
            stays,
            clinical.emergency_rows,
            clinical.admission,
            "physionet.org/content/mimic-iv-ed",
            own,
        ),
        DataSet(
            "mimic-ed-return",
            "whether the patient comes back within 72 hours",
            "choice",
            stays,
            clinical.emergency_rows,
            clinical.return_visit,
            "physionet.org/content/mimic-iv-ed",
            own,
        ),
        instances(
            "mimic-ed-critical",
            "critical triage, as MedS-Bench's task 119",
            "mimic_iv_ed/task119.json",
            own,
        ),
    )


def _short() -> tuple[DataSet, ...]:
    def short(name: str, about: str, file: str, read: str, origin: str, licence: str) -> DataSet:
        return DataSet(
            name, about, "short", (file,), _RECORDS, getattr(opendomain, read), origin, licence
        )

    flash = "github.com/RUC-NLPIR/FlashRAG"
    searcher = "github.com/RUCAIBox/R1-Searcher"
    hippo = "github.com/OSU-NLP-Group/HippoRAG"
    return (
        _bioasq("bioasq-factoid", "questions for one fact", "factoid", _BIOASQ_OTHER),
        _bioasq("bioasq-list", "questions for a list of facts", "list", _BIOASQ_OTHER),
        short("nq", "Natural Questions", "opendomain/nq/test.jsonl", "flashrag", flash, _SHARE),
        short("triviaqa", "TriviaQA", "opendomain/triviaqa/test.jsonl", "flashrag", flash, _APACHE),
        short("popqa", "PopQA", "opendomain/popqa/test.jsonl", "flashrag", flash, _MIT),
        short("bamboogle", "Bamboogle", "opendomain/bamboogle/test.jsonl", "flashrag", flash, _MIT),
        short(
            "hotpotqa",
            "HotpotQA with its supporting facts",
            "multihop/hotpotqa/qa_train.json",
            "hotpot",
            "hotpotqa.github.io",
            _SHARE,
        ),
        short(
            "2wiki",
            "2WikiMultiHopQA, the questions of HippoRAG",
            "multihop/2wikimultihopqa/questions.json",
            "listed",
            hippo,
            _APACHE,
        ),
        short(
            "2wiki-native",
            "2WikiMultiHopQA as published",
            "multihop/2wikimultihopqa/qa_native_sample.json",
            "hotpot",
            "github.com/Alab-NII/2wikimultihop",
            _APACHE,
        ),
        short(
            "musique",
            "MuSiQue with its decompositions",
            "multihop/musique/qa_train.json",
            "musique",
            "github.com/StonyBrookNLP/musique",
            "CC BY 4.0",
        ),
        short(
            "musique-1000",
            "MuSiQue, the questions of HippoRAG",
            "multihop/musique/questions_1000.json",
            "listed",
            hippo,
            "CC BY 4.0",
        ),
        *(
            short(
                f"{name}-500",
                f"500 questions of {title}",
                f"multihop/r1_searcher_eval/{name}_500.jsonl",
                "listed",
                searcher,
                licence,
            )
            for name, title, licence in (
                ("hotpotqa", "HotpotQA", _SHARE),
                ("2wiki", "2WikiMultiHopQA", _APACHE),
                ("musique", "MuSiQue", "CC BY 4.0"),
            )
        ),
    )


DATA_SETS: dict[str, DataSet] = {
    found.name: found for found in (*_choices(), *_chinese(), *_long(), *_clinical(), *_short())
}


def data_set(name: str) -> DataSet:
    """Raises `BadConfig` for a name that no data set has."""
    try:
        return DATA_SETS[name]
    except KeyError:
        near = get_close_matches(name, DATA_SETS, 1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise BadConfig(
            f"no data set {name!r}", fix=f"{hint}`osler eval tasks` lists them"
        ) from None


def load(name: str, folder: Path) -> Loaded:
    """The data set, from its files below `folder`.

    Raises `BadConfig` for an unknown name, `MalformedSource` for files that are not there or
    cannot be read.
    """
    return data_set(name).load(folder)
