"""What is no answer, in the words of many models; and findings that only look like it."""

import pytest

from osler.llm.reading.refusals import is_non_answer

REFUSALS = [
    "Unfortunately, the references do not mention this.",
    "The references do not mention the dose.",
    "The provided documents do not specify the year in which it was approved.",
    "The provided context doesn't contain information about metformin.",
    "None of the references mention this drug.",
    "None of the provided passages answers the question.",
    "Based on the provided references, I cannot determine the answer.",
    "Based on my internal knowledge, I can't answer this question, I need to retrieve external"
    " knowledge.",
    "I can't answer this question, I need to retrieve external knowledge.",
    "I can’t answer this question.",
    "I'm sorry, but I cannot answer this question based on the given information.",
    "I don't have enough information to answer this question.",
    "I do not know.",
    "As an AI language model, I do not have access to patient records.",
    "There is no information about this in the references.",
    "There is not enough information to answer the question.",
    "This cannot be determined from the provided passages.",
    "The mechanism cannot be determined from the references.",
    "The dose is not mentioned in the provided references.",
    "It is not stated.",
    "Not mentioned in the references.",
    "No relevant information was found.",
    "Insufficient information to answer.",
    "**The references do not mention this.**",
    "The references do not mention this. They only discuss its use in adults.",
    "The references do not say, so I cannot answer.",
    "The evidence does not say.",
    "Unknown",
    "no_answer",
    "No answer.",
    "sample",
    r"\scriptsize(2)",
    "N/A",
    "无",
    "…",
    "Unknown。",
    "Sorry. The evidence does not say.",
    "What is given first in anaphylaxis: The evidence does not say.",
    "过敏性休克首选什么药物：现有证据没有说明。",
    "Unfortunately, the search results do not provide an answer. Please consult a physician.",
    "资料中没有提到这一点。",
    "很遗憾，参考资料没有提及剂量。",
    "根据所给资料，无法确定答案。",
    "抱歉，我无法回答这个问题。",
    "根据我的内部知识，我无法回答这个问题，需要检索外部知识。",
    "没有足够的信息回答该问题。",
    "我不知道。",
    "现有证据没有说明。",
]

ANSWERS = [
    "none",
    "no",
    "Na",
    "0",
    "There is no evidence that vitamin C prevents colds.",
    "There is insufficient evidence to recommend screening.",
    "The study did not report any deaths.",
    "The evidence does not support its use.",
    "It is not known whether the drug crosses the placenta.",
    "Unknown primary tumour",
    "Cause: unknown.",
    "Iron [1]. The evidence does not say: give it slowly.",
    "The cause cannot be determined in a third of cases.",
    "Not recommended",
    "No, it does not raise the risk.",
    "The references do not mention the dose, but it is 500 mg twice daily.",
    "Metformin. The references do not mention the dose.",
    "Patients who cannot answer questions are assessed by gaze.",
    "It is not given in pregnancy.",
    "Warfarin is not found in breast milk.",
    "No sample was taken",
    "500 mg",
    r"\beta",
    "I would give aspirin.",
    "答案是阿司匹林",
    "没有证据表明维生素C可预防感冒。",
    "不能用于孕妇",
    "无症状",
    "资料没有提到剂量，但常用剂量为500毫克。",
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_no_answer(text: str) -> None:
    assert is_non_answer(text)


@pytest.mark.parametrize("text", ANSWERS)
def test_a_finding_that_denies_is_an_answer(text: str) -> None:
    assert not is_non_answer(text)
