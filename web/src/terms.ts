// Names that texts and graphs bring, in Chinese; any other stands as it is.

// Kinds of text, and the UMLS's semantic types.
const KINDS: Record<string, string> = {
  guideline: "指南",
  textbook: "教科书",
  "drug label": "药品说明书",
  "question and answer": "问答",
  emergency: "急诊",
  review: "综述",
  "systematic review": "系统综述",
  "meta-analysis": "荟萃分析",
  "randomized controlled trial": "随机对照试验",
  "case reports": "病例报告",
  "disease or syndrome": "疾病或综合征",
  "pharmacologic substance": "药物",
  "sign or symptom": "体征或症状",
  "pathologic function": "病理过程",
  "laboratory procedure": "实验室检查",
  "diagnostic procedure": "诊断操作",
  "therapeutic or preventive procedure": "治疗或预防操作",
  finding: "所见",
  antibiotic: "抗生素",
  vitamin: "维生素",
};

// Relations of the UMLS and of SNOMED CT.
const RELATIONS: Record<string, string> = {
  isa: "属于",
  inverse_isa: "包括",
  may_treat: "可治疗",
  may_be_treated_by: "可用其治疗",
  treated_by: "用其治疗",
  treats: "治疗",
  may_prevent: "可预防",
  may_be_prevented_by: "可用其预防",
  may_diagnose: "可诊断",
  may_be_diagnosed_by: "可用其诊断",
  due_to: "由其引起",
  cause_of: "引起",
  complication_of: "是其并发症",
  interacts_with: "相互作用",
  has_finding: "可有表现",
  is_finding_of: "是其表现",
  has_contraindicated_drug: "禁用药物",
  contraindicated_with_disease: "禁用于",
  monitors: "监测",
  monitored_by: "用其监测",
};

const SOURCES: Record<string, string> = { formulas: "公式" };

export const inChinese = {
  kind: (name: string) => KINDS[name.toLowerCase()] ?? name,
  relation: (name: string) => RELATIONS[name.toLowerCase()] ?? name.replaceAll("_", " "),
  source: (name: string) => SOURCES[name] ?? name,
};
