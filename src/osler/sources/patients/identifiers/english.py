"""Rules for English: names by title, label, relation and form; dates in words; addresses."""

from __future__ import annotations

from osler.sources.patients.identifiers.found import Patterns

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? )?"
_DAY = r"(?:\d{1,2}(?:st|nd|rd|th)?)"
_YEAR = r"(?:1[89]|20)\d\d"

# A word of a name: Carver, O'Connell, El-Masri, MacLeod, Nyström.
_WORD = r"(?:(?:O|D|L)['’])?[A-Z][a-zà-ÿ]+(?:[A-Z][a-zà-ÿ]+)?(?:[-'’][A-Za-zà-ÿ][a-zà-ÿ]+)*"
_INITIAL = r"[A-Z]\."
_PARTICLE = r"(?:(?:van|von|der|den|de|del|la|el|al|bin|ibn|da|dos|di)\s+)"
# Words that begin a sentence or name a thing and are no part of a name.
_NO_NAME = (
    r"(?!(?:The|This|That|These|Those|A|An|And|Or|But|No|Not|He|She|They|We|It|His|Her|Their|Our"
    r"|Patients?|Since|On|In|At|By|For|From|With|Of|To|As|If|When|After|Before|During|Please|Take"
    r"|Give|Date|Visit|Chart|Case|Seen|Signed|Phone|Telephone|Address|Email|Mail|Home|Health"
    r"|Hospital|Account|Insurance|Medical|Lab|Device|Next|Prior|Admit|Admitted|Dictated|Referred"
    r"|Review|Follow|Send|Write|Text|Fax|Call|Contact|Emergency|Symptoms|Blood|White|Red|Vitamin"
    r"|Glasgow|Apgar|Mobitz|Baby|Boy|Girl|Unit|Ward|Type|Class|Stage|Grade|Christmas|Easter|Day"
    r"|Sunday|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|MRN|DOB|SSN|NHS|CT|MRI|ECG|ICD"
    r"|Mellitus|Disease|Syndrome|Disorder|Failure|Insufficiency|Attack|Institute|University|Centre"
    r"|Center|Society|Association|America|Europe|Chinese|American|European|Asian|African|What|Which"
    r"|Who|How|Why|Where|Is|Are|Does|Do|Can|Should|Use|Avoid|Consider|Start|Stop|Check|Monitor"
    rf"|Coma|Scale|Score|Index|Intensive|Care|Medicine|Department|Clinic|{_MONTH})\b)"
)
_NAME_WORD = rf"(?:{_NO_NAME}(?:{_WORD}|{_INITIAL}|[A-Z](?=\s+[A-Z])))"
_NAME = rf"(?:{_NAME_WORD}(?:[ ]{_PARTICLE}*{_NAME_WORD}){{0,3}}(?: (?:Jr\.?|Sr\.?|II|III|IV)\b)?)"
_FULL_NAME = (
    rf"(?:{_NAME_WORD}(?:[ ]{_PARTICLE}*{_NAME_WORD}){{1,3}}(?: (?:Jr\.?|Sr\.?|II|III|IV)\b)?)"
)
_TITLE = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Drs|Prof|Professor|Doctor|Nurse|Sister|Captain|Sir|Lady|Rev|Father"
    r"|Sgt|Officer)\b\.?"
)
_PERSON = (
    r"(?:brother|sister|wife|husband|partner|son|daughter|mother|father|aunt|uncle|cousin|niece"
    r"|nephew|neighbour|neighbor|friend|guardian|caregiver|carer|driver|nurse|surgeon|physician"
    r"|doctor|GP|midwife|therapist|physiotherapist|pharmacist|social worker|interpreter|informant"
    r"|witness|attending|resident|registrar|consultant|name|grandson|granddaughter|grandmother"
    r"|grandfather|fianc[ée]e?|roommate|employer)"
)
_LABEL = (
    r"(?:Patient|Patient name|Pt|Name|Attending|Physician|Provider|Dictated by|Signed(?: by)?"
    r"|Signed electronically by|Prescription signed|Referred by|Emergency contact|Next of kin"
    r"|Guardian|Witness|Cc|CC|Mother's name|Father's name|Informant|Surgeon|Reported to|Reviewed by"
    r"|Case discussed with|Chart reviewed with|Obtained by|obtained by|Interpreter|Consultant)"
)
# What follows an eponym: the words before it name a disease, a sign or a device.
_EPONYM = (
    r"(?!(?:['’]s)?[ -](?:disease|syndrome|sign|score|scale|test|palsy|phenomenon|virus|catheter"
    r"|procedure|thyroiditis|lymphoma|tumou?r|fracture|index|criteria|classification|anaemia"
    r"|anemia|block|reflex|law|formula|risk|study|trial|method|contracture|aneurysm|ulcer)\b)"
)
_VERB = (
    r"(?:is|was|has|had|says|said|states|stated|denies|denied|reports|reported|complains|refused"
    r"|refuses|tolerated|presents|presented|underwent|attended|lives|lived|will|takes|took|came"
    r"|went|and|did|does|wants|asked|asks|noticed|remains|remained|speaks|gave|signed|agreed)"
)
_STREET = (
    r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Close|Way|Terrace"
    r"|Place|Pl|Square|Sq|Crescent|Gardens|Highway|Hwy|Parkway|Pkwy|Circle|Row|Mews|Hill)\b\.?"
)
_PLACE = r"(?:(?:[A-Z][\w'’.-]*|\d{4,5}(?:-\d{4})?|[A-Z]{1,2}\d[\dA-Z]? ?\d[A-Z]{2})(?: |, )?)"
_ID_WORD = (
    r"(?:MRN|URN|NHS|SSN|ID|number|no\.|num\.|#|accession|licen[cs]e plate|card shows|policy|serial"
    r"|subject|SN|PIN|plate|VIN|passport|account|Device|MR)"
)

PATTERNS: Patterns = {
    "NAME": (
        rf"\b(?P<x>(?:{_TITLE} and )?{_TITLE} {_PARTICLE}*{_NAME}){_EPONYM}",
        rf"\b{_LABEL}[:#]\s*(?P<x>{_NAME_WORD}, {_NAME}|{_NAME})",
        rf"\b{_LABEL} (?P<x>{_NAME}){_EPONYM}",
        rf"\bCc: {_NAME}, (?P<x>{_NAME})",
        rf"(?i:\b{_PERSON})(?: is|,| was)?,? \(?(?P<x>{_NAME}){_EPONYM}",
        rf"\b(?P<x>{_FULL_NAME}){_EPONYM}(?=[,.;:()]| {_VERB}\b|'s\b|$)",
        rf"(?:^|[.!?]\s+)(?P<x>{_NAME_WORD})(?= (?:says|said|states|denies|reports"
        r"|complains|refuses|refused|wants|asks|agreed)\b)",
        rf"\b(?P<x>Baby (?:Boy|Girl) {_NAME_WORD})",
        rf"\b(?:by|with) (?P<x>{_FULL_NAME}){_EPONYM}",
    ),
    "DATE": (
        rf"\b{_WEEKDAY}(?:the )?{_DAY}(?: of)?[ -]{_MONTH}\b\.?(?:,?[ -](?:{_YEAR}|\d\d))?",
        rf"\b{_WEEKDAY}{_MONTH}\.? {_DAY}\b(?:,? {_YEAR})?",
        rf"\b{_MONTH},? {_YEAR}\b",
        rf"\b(?:Christmas|Easter|Thanksgiving|New Year)(?:'s)?(?: Day| Eve)?,? {_YEAR}\b",
    ),
    "ID": (
        rf"(?i:\b{_ID_WORD}|#)(?:\s+(?i:number|no\.?|is|was))?\s*[:#,]?\s*"
        rf"(?P<x>(?:SN: )?(?=(?:[A-Z0-9][ -]?){{4}})(?=[\w -]*\d)"
        r"(?:[A-Z]{1,5}-?)?[A-Z0-9]+(?:-[A-Z0-9]+)*(?: \d{3} \d{4}| [A-Z]{3}\b)?)(?![\w/%])",
        r"\b(?P<x>SN: ?[A-Z0-9-]+)",
    ),
    "ADDRESS": (
        r"\b(?P<x>(?:(?:Flat|Unit|Apt|Suite) \w+, )?\d{1,5}[A-Za-z]?,? (?:[NSEW]\.? )?"
        r"(?:[A-Z][\w'’-]*\s){1,4}"
        rf"{_STREET}(?:,? (?:Apt|Suite|Unit|Flat|#) ?\w+)?(?:, {_PLACE}+)?)(?<![ ,])",
        r"\b(?P<x>P\.?O\.? Box \d+(?:, [A-Z]\w+)*)",
        r"(?i:address(?: is)?[:]?|lives at|resides at) "
        r"(?P<x>(?:Flat|Unit|Apt)?\s?\d[^.;\n]*?)(?=\.?$|[;.] )",
        rf"\b(?P<x>\d{{1,4}},? (?:rue|via|calle|avenida|ul\.) "
        rf"[^.;,\n]+(?:, {_PLACE}+)?)(?<![ ,])",
    ),
}
