"""Chinese names by surname, by what stands on both sides, and by pairs no medical text has."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.sources.patients.identifiers.chinese import BEFORE, COMPOUND, EVERY_SURNAME, TITLES
from osler.sources.patients.identifiers.found import Identifier
from osler.sources.patients.identifiers.words import read_words

_HAN = re.compile(r"[\u4e00-\u9fff]")
# Words of relation and of trade, after which whatever is no known word is a name.
_ROLE = re.compile(
    rf"(?:{BEFORE}|采样人|送检人|接诊人|收件人|联系人|收货人|户主|申请人|负责人|当事人|见证人|翻译"
    r"|长子|次子|长女|次女|三女|三子|幼子|幼女|养子|养女|儿媳|女婿|儿媳妇|大女儿|小女儿|大儿子|小儿子"
    r"|二女儿|二儿子|独子|独女|侄子|侄女|外甥|外甥女|伯父|叔叔|舅妈|姨妈|姑妈|表哥|表姐|表弟|表妹|堂兄"
    r"|堂弟|堂姐|堂妹|哥|姐|奶奶|爷爷|外婆|外公|姥姥|姥爷|未婚妻|未婚夫|前妻|前夫|舍友|班主任|队友|病友"
    r"|保洁员|村医|社工|康复师|治疗师|营养师|心理师|技师|药师|麻醉师|规培生|实习生|进修生|研究生"
    r"|主刀|一助|二助|三助|洗手护士|巡回护士|器械护士|责任护士|主管医生|主管医师|姓|名叫|叫做|自称|叫"
    r"|名字是|联系|嘱|告|委托|授权|找|问|电询|约|陪|转交|交给|收治|接诊|抢救|接到|受)"
    r"(?:本人|们)?[:：（(“\s]{0,2}$"
)
_SURNAME = re.compile(rf"{COMPOUND}|[{EVERY_SURNAME}]")
# Surnames that are oftener another word: a role or a person's verb must stand beside them.
_OTHERWISE = frozenset("于和应时全单连成宜广别易居养查管莫鱼木水益越干麻籍罗克羊长方向任常利")
# After these a person may come, or anything.
_WEAK_ROLE = re.compile(
    r"(?:由|请|与|经|嘱|告|约|叫|找|问|陪|联系|受|接到|抢救|随访|致|呈|通知|授权)$"
)
_START = re.compile(
    rf"(?:^|[\s，。；、：:,;（(\[【“”\"！？!?/|*）)]|\d[.、．]|\d床|床(?:位)?|[\d号室楼]|(?:{TITLES})|科|和|与|及|或"
    r"|病区|院|组|班|的|老|小|阿)$"
)
_VERBS = (
    r"主诉|自诉|诉|称|述|代诉|代述|补充|陪同|陪护|陪伴|签字|签名|签收|签署|来电|来院|来诊|来信|来访|来取|打来"
    r"|致电|电话|反映|反馈|要求|同意|拒绝|否认|表示|说|认为|询问|咨询|查房|会诊|会同|指示|建议|书写|记录|审核"
    r"|复核|报告|执行|核对|签发|主刀|手术|操作|值班|接班|交班|接诊|接收|送来|送入|送检|送医|护送|因|于|昨|今|昨日"
    r"|今日|昨晚|今晨|现|已|曾|将|拟|系|为|是|在|住|居住|患|有|无|未|不|被|由|经|与|和|及|或|跟|同|等|两|收"
    r"|入院|出院|转入|转出|转至|预约|复诊|就诊|分娩|死亡|跌倒|摔倒|突发|服用|术后|术前|的|之|关系|性别|年龄"
    r"|男|女|岁|老|左|右|双|病情|签|带|接|送|取|交|给|把|让|请|向|对|从|到|去|至|来|又|也|还|仍|只|才|就|都"
    r"|可|能|会|想|愿|怕|疑|予|用|做|行|拔|抽|查|看|见|发|住院|门诊|床|联系|代|陪|离|搬|出生|生于|生|一家"
    r"|交代|交待|说明|解释|沟通|夫妇|夫妻|父母|父亲|母亲|妻子|丈夫|儿子|女儿|家属|家长|本人|先|哭|吵|怀|孕|备"
)
_END = re.compile(
    rf"(?:$|[\s，。；、：:,;（）()\[\]【】“”\"！？!?/|\d·A-Za-z\-—]|{TITLES}|{_VERBS})"
)
_PERSON_NEXT = re.compile(
    rf"(?:{TITLES}|主诉|自诉|诉|称|代诉|代述|补充|陪同|陪护|签字|签名|来电|致电|反映|要求|表示|之[父母妻子女夫]"
    r"|的(?:丈夫|妻子|儿子|女儿|父亲|母亲|爱人|家属|家人|家长|老伴|哥哥|弟弟|姐姐|妹妹|病历|床|电话|报告)"
    r"|[，,、\s（(]{1,3}(?:男|女|汉族|[\d零一二三四五六七八九十]{1,4}\s?岁|孕\d|\d{4,}|住院|病历|病案|门诊|工号|编号"
    r"|身份证|电话|手机|床|生于|出生|系|退休|农民|工人|教师|职员|学生|家属|[父母妻子女夫][）)]|[^，。]{1,4}[科区室]"
    r"|患者|患儿|病人|儿媳|女婿|长子|长女|妻子|丈夫|儿子|女儿|关系))"
)
# Words that begin like a surname and that no list of pairs need know.
_NOBODY = re.compile(
    r"(?:患者|病人|患儿|家属|家人|家长|本人|自己|他人|无名|不详|同前|同上|医[生师]|护士|主任|教授|大夫|先生|女士"
    r"|医院|门诊|住院|入院|出院|手术|检查|治疗|诊断|处理|病情|签字|电话|联系|父[亲母]|母[亲子女]|[男女]性"
    r"|时间|日期|姓名|性别|年龄|民族|职业|婚姻|[周月年日][一二三四五六日天内前后初末]|星期|[上下本]周|单位"
    r"|[一二三四五六七八九十两]|[A-Za-z0-9])"
)


def find_chinese_names(line: str) -> Iterator[Identifier]:
    """Names of a surname and one or two signs, or of any signs after a word for a person."""
    for at in range(len(line)):
        if not _HAN.match(line[at]):
            continue
        before = line[max(0, at - 10) : at]
        role = _ROLE.search(before) is not None
        length = _measure_name(line, at, role, role or _START.search(before) is not None)
        if length:
            yield Identifier("NAME", at, at + length)


def _measure_name(line: str, at: int, role: bool, bound: bool) -> int:
    """The length of the name that begins here; 0: none does."""
    if _NOBODY.match(line, at):
        return 0
    surname = _SURNAME.match(line, at)
    size = len(surname[0]) if surname else 0
    for length in (4, 3, 2) if size == 2 else (3, 2):
        name = line[at : at + length]
        if len(name) < length or not all(map(_HAN.match, name)):
            continue
        if not bound:
            if (
                size
                and length > 2
                and not _is_otherwise(line, at)
                and _is_strange(line, at, length)
            ):
                return length
        elif _is_name(line, at, length, size, role):
            return length
    return 0


def _is_name(line: str, at: int, length: int, size: int, role: bool) -> bool:
    name, after = line[at : at + length], line[at + length :]
    if not _END.match(after):
        return (
            role
            and size > 0
            and length > 2
            and not _is_otherwise(line, at)
            and _is_strange(line, at, length, closed=False)
        )
    person = _PERSON_NEXT.match(after) is not None
    pairs = [name[i : i + 2] in read_words() for i in range(length - 1)]
    ends_in_verb = re.match(rf"(?:{_VERBS}|{TITLES})", name[max(size, 1) + 1 :])
    if ends_in_verb and not person and name[-2:] in read_words():
        return False
    if size == 2:
        return length > 2 or role or person or _is_closed(after)
    if size == 1:
        if not any(pairs):
            if role or person:
                return True
            return not _is_otherwise(line, at) and (
                length == 3 or not _is_word_like(line, at, length)
            )
        if role and person:
            return not pairs[0] or (length == 3 and not all(pairs))
        return (role or person) and length == 3 and not pairs[0]
    if not role or any(pairs) or re.match(_VERBS, name):
        return False
    if _WEAK_ROLE.search(line[:at]):
        return person and length == 3
    return person or not _is_word_like(line, at, length)


def _is_otherwise(line: str, at: int) -> bool:
    return line[at] in _OTHERWISE or (line[at] == "周" and line[at - 1 : at].isdigit())


def _is_strange(line: str, at: int, length: int, *, closed: bool = True) -> bool:
    """Whether no two neighbours in it, nor over its edges, are a pair of other texts."""
    pairs = [line[i : i + 2] for i in range(max(0, at - 1), at + length)]
    known = any(pair in read_words() for pair in pairs[0 if closed else 1 :])
    after = line[at + length :]
    return not known and (not closed or _PERSON_NEXT.match(after) is not None or _is_closed(after))


def _is_closed(after: str) -> bool:
    return re.match(r"$|[\s，。；、,;（）()]", after) is not None


def _is_word_like(line: str, at: int, length: int) -> bool:
    """Whether a pair over one of the edges of two signs is a known one."""
    left = at > 0 and line[at - 1 : at + 1] in read_words()
    right = line[at + length - 1 : at + length + 1] in read_words()
    return left or right
