"""Rules for English: names by title, label, relation and form; dates in words; addresses."""

from __future__ import annotations

from osler_serve.clinic.identifiers.found import Patterns

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?"
    r"|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_WEEKDAY = (
    r"(?:(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun),? )?"
)
_DAY = r"(?:\d{1,2}(?:st|nd|rd|th)?)"
_YEAR = r"(?:1[89]|20)\d\d"

_ORDINAL = (
    "(?:twenty-|thirty-)?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)|tenth"
    "|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth"
    "|nineteenth|twentieth|thirtieth"
)
# A word of a name: Carver, O'Connell, El-Masri, MacLeod, Nyström.
_WORD = r"(?:(?:O|D|L)['’])?[A-ZÀ-ÖØ-Þ][a-zà-ÿ]+(?:[A-Z][a-zà-ÿ]+)?(?:[-'’][A-Za-zà-ÿ][a-zà-ÿ]+)*"
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
# Besides, words that begin headings and names of bodies, where nothing else says "a person".
_NO_PERSON = (
    r"(?!(?:Dear|Hello|Hi|Colleagues?|Team|Madam|Parents?|Mum|Dad|Mother|Father|Wife|Husband"
    r"|Daughter"
    r"|Son|Partner|Nurse|Doctor|Thanks|Thank|Regards|Yours|Kind|Best|Sincerely|Re|New|North|South"
    r"|East|West|United|Royal|National|General|Central|World|International|Public|State|Federal"
    r"|County|City|School|College|Journal|Guideline|Guidelines|Trial|Study|Report|Group|Network"
    r"|Committee|Board|Council|Trust|Foundation|Academy|Programme|Program|Service|Services|Surgery"
    r"|Practice|Pharmacy|Laboratory|Laboratories|Inc|Ltd|Company|Press|House|Lodge|Court|Manor"
    r"|Name|Insurance|Medicare|Medicaid|Veteran|Veterans|Affairs|Record|Number|Specimen|Sample"
    r"|Impression|Plan|Assessment|History|Exam|Examination|Labs|Meds|Medications|Allergies"
    r"|Discharge|Summary|Diagnosis|Operation|Procedure|Indication|Findings|Technique|Comparison"
    r"|Chest|Heart|Lung|Liver|Kidney|Brain|Abdomen|Pelvis|Left|Right|Upper|Lower|Both|Acute"
    r"|Chronic|Severe|Mild|Moderate|Normal|Stable|Positive|Negative|Last|First|Second|Third"
    r"|Specialist|Senior|Junior|Staff|Chief|Head|Attending|Resident|Consultant|Registrar|Cox"
    r"|Kaplan|Meier|Fisher|Student|Mann|Whitney|Cochrane|Lancet|Lactated|Ringer|Foley|Hickman"
    r"|Swan|Ganz|French|Bair|Hugger|Trendelenburg|Child|Pugh|Barr|Epstein|Zika|Ebola|Lyme"
    r"|Past|Social|Family|Review|Systems?|Vital|Signs?|Physical|Skin|Bones?|Muscles?|Glands?|Drugs?"
    r"|Diseases|Pressure|Cells?|Beta|Alpha|Immune|Nervous|Potential|Responses?|Balance|Acid|Base"
    r"|Special|Surgical|Life|Human|Growth|Body|Mass|Levels?|Count|Rates?|Tests?|Results?|Time|Total"
    r"|Free|Serum|Urine|Plasma|Oxygen|Room|Air|Bed|Floor|Alcohol|Tobacco|Status|Code|Full|Present"
    r"|Illness|Complaint|Current|Reason|Problems?|List|Pain|Mental|Safety|Risks?|Early|Warning"
    r"|Post|Days?|Hours?|Weeks?|Morning|Evening|Night|Rehab|Therapy|Occupational|Speech|Transfer"
    r"|Outpatient|Inpatient|Emergency|Triage|Minor|Major|Basic|Advanced|Support|Living|Will|Power"
    r"|Attorney|Contact|Local|Authority|Cross|Blue|Shield|Male|Female|Man|Woman|Engl|Med|Global"
    r"|Burden|Abuse|Anabolic|Skeletal|Cardiac|Cardio\w*|Gastro\w*|Neuro\w*|Peripheral|Autonomic"
    r"|Han|Native|Indian|Hispanic|Latino|African|Caucasian|British|English|Spanish|German|Polish"
    r"|\w+(?:tion|sion|ology|itis|osis|emia|ness|ical|ular|ism|opathy|ectomy|scopy|graphy|cillin"
    r"|mycin|azole|statin|iac|prim|gen|tic))\b)"
)
_NAME_WORD = rf"(?:{_NO_NAME}(?:{_WORD}|{_INITIAL}|[A-Z](?=\s+[A-Z])))"
_NAME = rf"(?:{_NAME_WORD}(?:[ ]{_PARTICLE}*{_NAME_WORD}){{0,3}}(?: (?:Jr\.?|Sr\.?|II|III|IV)\b)?)"
_PLAIN_WORD = rf"(?:{_NO_PERSON}{_NAME_WORD})"
_CAPITALS = r"[A-Z][A-Z'’-]{2,}"
# Right of a name that stands alone: no further word that belongs to it.
_ENDS = r"(?![\w'’-]| [A-Z])"
_TITLE = (
    r"(?:Mr|Mrs|Ms|Miss|Mx|Dr|Drs|Prof|Professor|Doctor|Nurse|Sister|Captain|Sir|Lady|Rev|Father"
    r"|Sgt|Officer|MD|RN|NP|PA|DO|CNA|LPN|SHO|SpR|Constable|Sra?|Mme|Herr|Frau|Señora?)\b\.?"
)
_PERSON = (
    r"(?:brother|sister|wife|husband|partner|son|daughter|mother|father|aunt|uncle|cousin|niece"
    r"|nephew|neighbour|neighbor|friend|guardian|caregiver|carer|driver|nurse|surgeon|physician"
    r"|doctor|GP|midwife|therapist|physiotherapist|pharmacist|social worker|interpreter|informant"
    r"|witness|attending|resident|registrar|consultant|name|grandson|granddaughter|grandmother"
    r"|grandfather|fianc[ée]e?|roommate|employer)"
)
# Abbreviations of trades and places, not a person's initials.
_STAFF = (
    r"(?:GP|OT|PT|SLT|SALT|ENT|ICU|ITU|HDU|ED|CT|MRI|SHO|SPR|RN|NP|PA|MD|HO|FY\d|CNS|ANP|DN|HV|SW"
    r"|MDT|ER|OP|IP|US|UK|MS|HR|EEG|ECG|EMG|IV|CMHT|RMO|AHP|PHN|MW|Pt|On|In|Called|And)"
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
_DOES = (
    r"(?:says|said|states|stated|denies|denied|reports|reported|complains|complained|refuses"
    r"|refused"
    r"|wants|wanted|asks|asked|agreed|attended|attends|lives|lived|slept|walked|walks|ate|smokes"
    r"|drinks|drank|works|worked|thinks|thought|feels|felt|cried|told|tells|called|phoned|came|went"
    r"|tolerated|appears|looks|looked|seems|enjoys|struggles|remembers|forgot|hopes|wishes|knows"
    r"|understands|understood|admits|admitted|recalls|describes|described|noticed|mentioned)"
)
_STREET = (
    r"(?:Street|St|Road|Rd|Avenue|Ave|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Close|Way|Terrace"
    r"|Place|Pl|Square|Sq|Crescent|Grove|Green|Park|Walk|Rise|Crossing|Trail|Loop|Wharf|Quay"
    r"|Alley|Pike|Broadway|Gardens|Highway|Hwy|Parkway|Pkwy|Circle|Row|Mews|Hill)\b\.?"
)
_POSTCODE = r"[A-Z]{1,2}\d[\dA-Z]? ?\d[A-Z]{2}"
_PLACE = rf"(?:(?:{_POSTCODE}\b|[A-Z][\w'’.-]*|\d{{4,5}}(?:-\d{{4}})?)(?: |, )?)"
_ID_WORD = (
    r"(?:MRN|URN|NHS|SSN|ID|number|no\.|num\.|#|accession|licen[cs]e plate|card shows|policy|serial"
    r"|subject|SN|PIN|plate|VIN|passport|account|Device|MR(?=[:# ]))"
)

_NUMBERED = (
    r"mrn|urn|nhs|ssn|chi|hcn|hn|csn|fin|uhid|phn|npi|dea|ppsn|nino|medicare|medicaid|insurance"
    r"|insurer|lab|licen[cs]e|claim|group|policy|hospital|case|ref(?:erence)?|order|requisition"
    r"|sample|specimen|barcode|accession|study|participant|enrolment|enrollment|member(?:ship)?"
    r"|subscriber|badge|certificate|prescription|rx|encounter|visit|chart|file|record|registration"
    r"|reg|folder|admission|patient|subject|account|acct|invoice|serial|device|model|implant|lot"
    r"|passport|plate|vehicle|vin|imei|id|pin|no|number|va|unit|wristband|episode|appointment"
    r"|aadhaar|gmc|nmc|nhi|ic|collar|cad|medical|warrant|username|service|docket"
    r"|booking|referral|ticket|beneficiary|plan|payer|auth|authori[sz]ation|national insurance"
    r"|social security|driver|driving|voter|tax|student|employee|staff|payroll"
)

PATTERNS: Patterns = {
    "NAME": (
        rf"\b(?P<x>(?:{_TITLE} and )?{_TITLE} {_PARTICLE}*{_NAME}){_EPONYM}",
        rf"\b{_LABEL}[:#]\s*(?P<x>{_NAME_WORD}, {_NAME}|{_NAME})",
        rf"\b{_LABEL} (?P<x>{_NAME}){_EPONYM}",
        rf"\bCc: {_NAME}, (?P<x>{_NAME})",
        rf"(?i:\b{_PERSON}(?:-in-law)?)(?: is|,| was)?,? \(?(?P<x>{_NAME}){_EPONYM}",
        rf"(?:^|[.!?]\s+)(?P<x>{_NAME_WORD})(?= (?:says|said|states|denies|reports"
        r"|complains|refuses|refused|wants|asks|agreed)\b)",
        rf"\b(?P<x>Baby (?:Boy|Girl) {_NAME_WORD})",
        # After a title even an ordinary word is a name, and one letter.
        rf"\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Prof)\b\.? (?P<x>(?!{_STAFF}\b)[A-Z](?:[a-z][\w'’-]*|\b\.?))",
        rf"\b(?i:seen|reviewed|assessed|examined|signed|dictated|typed|countersigned)(?: by|:)? "
        rf"(?P<x>(?!{_STAFF}\b)[A-Z]{{2,3}})\b(?=[,.;(/]| (?:and|at|on|who)\b|$)",
        rf"(?:^|[.] )(?P<x>(?!{_STAFF}\b)[A-Z]{{2,3}})(?= is an? \d{{1,3}}[ -]?y)",
        r"\b(?i:name is|named|its|it's|this is) (?P<x>[a-z]{3,})(?= (?:here|calling|again)\b)",
        rf"(?i:\b(?:name|patient|pt|surname)\b)[:\s]+(?P<x>{_CAPITALS},? {_CAPITALS}"
        rf"(?: [A-Z]\b\.?)*)",
        rf"\b(?i:MR|MRS|MS|DR|MISS|PROF)\b\.? (?P<x>{_CAPITALS}(?: {_CAPITALS})*)",
        r"\b(?i:mrs?|ms)\b\.? (?P<x>[a-z][a-z'’-]{2,})",
        r"\b(?i:pt|patient|mrs?|ms|dr|nurse|wife|son|daughter|husband|mum|mother) "
        r"(?P<x>[a-z]\. ?[a-z][a-z'’-]{2,})",
        r"\b(?:DOCTOR|NURSE|CONSULTANT|SURGEON|REGISTRAR|ANAESTHETIST|PHYSICIAN|WITNESS|PROVIDER)"
        r"(?: [A-Z]+){0,2}: ?(?P<x>[A-Z][A-Z'’-]+\.?(?: [A-Z][A-Z'’-]*\.?){0,3})",
        r"\b(?i:pat[lI1i]ent|name)(?: name)?[:#] ?"
        r"(?P<x>[A-Z][a-z'’-]+[01]?, [A-Z][a-z]+[0-9]?[a-z]*)",
        rf"\b(?P<x>{_PLAIN_WORD})(?=['’]s (?i:{_PERSON}|mum|dad|family|house|flat|room|chart)\b)",
        rf"(?:^|[.!?]\s+)(?P<x>{_PLAIN_WORD})(?= (?:and (?:her|his)|{_DOES})\b)",
        rf"\b(?i:dear|hi|hello|regards|thanks|sincerely|cheers|thank you),? "
        rf"(?P<x>{_PLAIN_WORD}){_ENDS}",
        rf"\b(?i:met|told|asked|phoned|rang|paged|texted|emailed|named|called|nickname|known as"
        rf"|goes by"
        rf"|prefers|likes to be called|spoke (?:to|with)|talked (?:to|with)|discussed with"
        rf"|handed over to"
        rf"|per|w/|cc|seen by|d/w|husband|mum|mom|dad|gran|nan|bf|gf|twin|sibling)[:,]? "
        rf"\(?(?P<x>{_PLAIN_WORD}(?: {_PLAIN_WORD}){{0,2}}){_EPONYM}{_ENDS}",
        rf"\b(?P<x>{_NAME_WORD}(?: {_NAME_WORD}){{0,2}})(?=,? (?:MD|RN|DO|NP|PA-C|PhD|FRCP|MBBS"
        rf"|FRCS|DPT|PharmD)\b)",
        rf"\b(?i:signed|sgd|(?:reviewed|seen|checked|given|verified|witnessed|prepared|requested"
        rf"|ordered"
        rf"|referred|accompanied|brought in|escorted|found|prescribed|authori[sz]ed"
        rf"|completed) by)[:,]? "
        rf"(?P<x>{_PLAIN_WORD}(?: {_PLAIN_WORD}){{0,2}}){_EPONYM}{_ENDS}",
        rf"(?:^|[.!?]\s+)(?P<x>{_PLAIN_WORD})(?=,? (?:is |was |who is )?(?:now |a |an |aged )?"
        r"\d{1,3}[ -]?(?:years?|yr|yo|y/o|months?)\b)",
        r"\b(?P<x>(?:[A-Z]\.){2,3})(?=,? (?:a|an|is|was|has|had|aged|age)\b|, \d| \()",
        r"\b(?i:transcribed|typed|dictated|entered|recorded|scribed|initialled)(?: [\d.]+)? by "
        r"(?P<x>[a-z]{2,3}|[A-Z]{2,3})\b",
    ),
    "DATE": (
        rf"\b{_WEEKDAY}(?:the )?{_DAY}(?: of)?[ -]{_MONTH}\b\.?(?:,?[ -](?:{_YEAR}|\d\d))?",
        rf"\b{_WEEKDAY}{_MONTH}\.? {_DAY}\b(?:,? {_YEAR})?",
        r"\b(?i:on|since|until|from|by) the (?P<x>\d{1,2}(?:st|nd|rd|th))\b"
        r"(?! (?:day|week|month|rib|floor|c?entile|percentile|nerve|grade|trimester|toe|digit))",
        rf"\b{_MONTH}\b\.?,? {_YEAR}\b",
        r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day,? \d{1,2}/\d{1,2}(?![\d/])",
        rf"(?<![\w-])(?i:{_WEEKDAY}\d{{1,2}} {_MONTH})(?![\w-])(?<! may)(?<! mar)",
        rf"(?<![\w-])\d{{1,2}}[ -](?i:{_MONTH})[ -](?:{_YEAR}|\d\d)\b",
        r"\b(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Tues?|Wed|Thur?s?|Fri|Sat|Sun))"
        r",? (?:the )?\d{1,2}(?:st|nd|rd|th)\b",
        r"(?<![\d/])(?P<x>(?:0?[1-9]|1[0-2])/(?:0?[1-9]|[12]\d|3[01]))"
        r"(?= (?:@|at) ?\d{1,2}[:.]?(?:\d\d|[ap]m))",
        r"\b(?i:[O0-9lI]{1,2}[/.-][O0-9lI]{1,2}[/.-](?:[12lI][O0-9lI]{3}))\b",
        rf"\b{_MONTH}\b\.?[ '’-]+\d\d\b(?![:/])",
        rf"\b(?:the )?(?P<x>(?i:{_ORDINAL})(?: day)? (?:of )?{_MONTH}\b(?:,? {_YEAR})?)",
        rf"\b(?P<x>{_MONTH} (?:the )?(?i:{_ORDINAL})\b(?:,? {_YEAR})?)",
        r"\b(?:Christmas|Boxing|New Year(?:['’]s)?|Easter|Thanksgiving|Labou?r|Memorial"
        r"|Independence"
        r"|Valentine['’]s|St\.? Patrick['’]s|Mother['’]s|Father['’]s|Veterans|Canada|Australia"
        r"|Good|Ash"
        r"|Palm|Shrove) (?:Day|Eve|Sunday|Monday|Tuesday|Wednesday|Friday)\b"
        rf"(?:,? {_YEAR})?",
        rf"\b(?:Christmas|Easter|Thanksgiving|Halloween|Hogmanay|Diwali|Eid|Ramadan|Passover"
        rf"|Hanukkah)\b(?:,? {_YEAR})?|\b(?i:fourth|4th) of July\b",
    ),
    "ID": (
        r"\b(?i:reads|says|band|wristband|chart|bracelet|run sheet)(?: [A-Z]{2,4})?[:#]? "
        r"(?P<x>\d[\d-]{4,}\d)(?![\w/%])",
        r"\b[A-Z]{2,4}[:#]? (?P<x>(?=[\d-]{7,})\d{2,}(?:-\d+)+)(?![\w/%-])",
        rf"(?i:\b{_ID_WORD}\b|#)(?:\s+(?i:number|no\.?|is|was))?\s*[:#,]?\s*"
        rf"(?P<x>(?:SN: )?(?=(?:[A-Z0-9][ -]?){{4}})(?=[\w -]*\d)"
        r"(?:[A-Z]{1,5}-?)?[A-Z0-9]+(?:-[A-Z0-9]+)*(?: \d{3} \d{4}| [A-Z]{3}\b)?)(?![\w/%])",
        r"\b(?P<x>SN: ?[A-Z0-9-]+)",
        # Codes of capitals and four digits; not those of trials, drugs and genes.
        r"(?<![\w/-])(?!NCT|ISRCTN|PMID|PMC|GSK|BMS|AZD|SARS|CYP|HLA|COVID|ISO|IEC|EN\d)"
        r"(?P<x>(?=\d*[A-Z])(?=[A-Z\d]*\d{4})[A-Z\d]{7,14})(?![\w/%])",
        r"(?<![\w/])(?P<x>(?:[A-Z]{2,}|\d{2,})/[A-Z]{2,}/\d{3,})(?!\w)",
        r"\b(?P<x>[A-Z]{2}\d\d ?[A-HJ-PR-Z]{3})\b",  # a British plate
        rf"(?i:\b(?:{_NUMBERED})\b(?:['’]s)?\.?)(?i:\s*(?:licen[cs]e|card|id|no|num|number|nr|code"
        rf"|tag|is|was|reads)\b\.?)*\s*[:#,=]?\s*#?"
        r"(?!\d{1,2}/\d{1,2}\b)(?P<x>(?=(?:[^\d\n]{0,3}\d){4})(?:[A-Z]{1,4}[ /-]?)?\d[\dA-Z]*"
        r"(?:[ /.-][A-Z]*\d[\dA-Z]*){0,5}"
        r"|[A-Z]{2,}[\dA-Z]*\d[\dA-Z]{3,})(?![\w/%])",
    ),
    "ADDRESS": (
        rf"\b(?P<x>\d{{1,5}}[A-Za-z]?,? (?:[A-Z][\w'’-]*\s){{1,4}}{_STREET}"
        rf"(?:,? (?:Apt|Suite|Unit|Flat|#)\.? ?\w+)?(?:, {_PLACE}+){{0,3}})(?<![ ,])",
        rf"\b(?P<x>(?:[A-Z][\w'’-]*\s){{1,4}}(?:Home|House|Lodge|Court|Manor|Hall|Cottage|Farm"
        rf"|Villas?|Towers?|Apartments|Hostel|Shelter), \d{{1,5}}[A-Za-z]? (?:[A-Z][\w'’-]*\s)"
        rf"{{1,4}}{_STREET}(?:, {_PLACE}+){{0,3}})(?<![ ,])",
        rf"\b(?P<x>(?:\d{{1,3}}(?:st|nd|rd|th)|(?:[NSEW]\.? )?[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)?) "
        rf"{_STREET} (?:and|&|at|/) (?:\d{{1,3}}(?:st|nd|rd|th)|[A-Z][\w'’-]*(?: [A-Z][\w'’-]*)?)"
        rf"(?: {_STREET})?)(?<![ ,.])",
        r"\b(?P<x>(?:(?:Flat|Unit|Apt|Suite) \w+, )?\d{1,5}[A-Za-z]?,? (?:[NSEW]\.? )?"
        r"(?:[A-Z][\w'’-]*\s){1,4}"
        rf"{_STREET}(?:,? (?:Apt|Suite|Unit|Flat|#) ?\w+)?(?:, {_PLACE}+)?)(?<![ ,])",
        rf"\b(?P<x>P\.?O\.? ?Box \d+(?:, {_PLACE}+)?)(?<![ ,])",
        rf"\b(?P<x>(?:[A-Z][\w'’-]*,? ){{1,5}}{_STREET},? "
        rf"(?:[A-Z][\w'’-]*,? ){{0,3}}{_POSTCODE})\b",
        rf"(?P<x>\b(?:[A-Z][\w'’-]*,? ){{0,3}}{_POSTCODE})\b",
        r"\b(?P<x>(?:[A-Z][\w'’-]* ?){1,3}, (?:[A-Z]{2}|[A-Z][a-z]+(?: [A-Z][a-z]+)?) \d{5}"
        r"(?:-\d{4})?)\b",
        rf"\b(?:li(?:ves?|ving|ved) (?:alone )?(?:in|at|near)|born in|native of|moved (?:from|to)"
        rf"|resident of"
        rf"|resides in|originally from|grew up in|farm (?:in|near)|travel(?:l?ed|ling)? (?:to|from)"
        rf"|returned (?:to|from)|home (?:in|to)|commutes (?:from|to)|works (?:in|at)|visiting"
        rf"|from|seen at"
        rf"|retired to|drove from|flew (?:in )?from|visit(?:ed|s)? to|holiday in|back to)"
        rf" (?P<x>{_PLAIN_WORD}(?: {_PLAIN_WORD}){{0,2}}){_EPONYM}(?![\w'’-])",
        r"(?i:address(?: is)?[:]?|lives at|resides at) "
        r"(?P<x>(?:Flat|Unit|Apt)?\s?\d[^.;\n]*?)(?=\.?$|[;.] )",
        rf"\b(?P<x>\d{{1,4}},? (?:rue|via|calle|avenida|ul\.) "
        rf"[^.;,\n]+(?:, {_PLACE}+)?)(?<![ ,])",
    ),
}
