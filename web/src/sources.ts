// Written by scripts/page_sources.py from the catalogue of sources and the replies.
export const SOURCES: Record<string, { en: string; zh: string }> = {
  book: { en: "book", zh: "教科书" },
  guideline: { en: "guideline", zh: "指南" },
  research: { en: "research", zh: "文献" },
  wiki: { en: "wiki", zh: "百科" },
  graph: { en: "graph", zh: "图谱" },
  emr: { en: "emr", zh: "病历" },
  web: { en: "web", zh: "网页" },
  trial: { en: "trials", zh: "临床试验" },
};
export const NOTICE = "For healthcare professionals and research. Supports, does not replace, clinical judgement. Not for emergencies. Do not enter patient-identifying information.";
