"""Rules for Chinese: names by surname and what stands beside them, numbers, dates, addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.sources.common_words import read_words
from osler_serve.clinic.identifiers.found import Identifier, Patterns

_H = r"[\u4e00-\u9fff]"
# The commonest surnames, which cover nearly everybody, and the compound ones.
_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾萧肖田董袁潘于蒋蔡余杜叶程苏魏吕"
    "丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付傅方白邹孟熊秦邱江尹薛闫阎段雷侯龙史陶黎贺顾毛郝龚邵万钱严"
    "覃武戴莫孔向汤岳温康施牛樊葛邢安齐易乔伍庞颜倪庄聂章鲁岑殷詹申欧耿关兰焦俞左柳甘祝包宁尚符舒阮柯纪"
    "梅童凌毕单季裴霍涂成苗谷盛曲翁冉骆蓝路游辛靳管柴蒙鲍华喻祁蒲房滕屈饶解牟艾尤时穆农司卓古吉缪简车项"
    "连芦麦褚娄窦戚岑景党宫费卜冷晏席卫米柏宗瞿桂全佟应臧闵苟邬边卞姬师和仇栾隋商刁沙荣巫寇桑郎甄丛仲"
    "虞敖巩明佘池查麻苑迟邝"
)
_RARE = (
    "褚卫尤许何曹戚喻柏水章奚彭昌苗凤花酆廉贺殷罗毕乐皮卞康卜平黄穆湛禹狄贝明臧伏谈茅庞熊舒屈祝"
    "阮蓝闵席季麻强贾路危童颜林徐骆胡凌霍虞支柯昝卢莫房裘缪干解宗宣贲洪包诸左崔钮嵇滑裴陆荣翁荀羊"
    "惠甄曲封芮羿储靳汲糜松井富乌焦巴弓隗山谷车侯宓蓬郗班仰秋仲伊宫宁仇甘厉戎祖武符景詹龙叶幸司韶郜黎"
    "蓟薄印宿白怀蒲邰鄂索咸籍赖卓蔺屠蒙池乔阴胥苍双闻莘党翟谭贡劳逄姬申扶堵冉宰郦璩桑濮牛寿边扈燕冀浦"
    "尚农温庄晏柴瞿阎充慕茹习宦艾鱼容古易慎戈廖庾终暨居衡步都耿满弘匡寇广禄阙欧殳沃利蔚越夔隆巩厍聂晁勾"
    "敖融冷辛阚那简饶空曾毋沙养鞠须丰巢蒯查后荆红游竺权盖益桓扁佘木哪"
)
# As the last sign of 当时, 应 …, these stand before a title and are no surname.
_NO_SURNAME = "和时应方向成全连经有关师单于任常"
COMPOUND = (
    "欧阳|司马|上官|诸葛|东方|皇甫|尉迟|公孙|慕容|司徒|令狐|夏侯|钟离|端木|南宫|独孤|长孙|宇文"
    "|西门|东郭|百里|呼延|轩辕|申屠|太史|公冶|澹台|濮阳|淳于|单于|太叔|仲孙|鲜于|闾丘|司空|万俟|赫连"
    "|完颜|耶律|拓跋|纳兰|爱新觉罗|叶赫|那拉|富察|东门|南门|左丘|梁丘|第五|羊舌|亓官|颛孙|漆雕|壤驷"
)
TITLES = (
    "先生|女士|小姐|医生|医师|大夫|主任|教授|护士长|护士|护师|同志|老师|老人|院长|药师"
    "|技师|太太|阿姨|同学|大爷|大妈|大叔|大婶|大娘|大伯|奶奶|爷爷|婆婆|叔叔|伯伯|师傅|经理|警官"
    "|律师|护工"
    "|总|姐|哥|嫂|某某|某"
)
BEFORE = (
    "患者|患着|病人|患儿|产妇|孕妇|病员|伤者|死者|姓名|联系人|监护人|代诉人|签名|签字|记录者"
    "|记录人|医师|医生"
    "|护士|大夫|主任|助手|术者|家属|之子|之女|之妻|之父|之母|其妻|其夫|其子|其女|其母|其父|其兄"
    "|其弟|其姐|其妹"
    "|哥哥|弟弟|姐姐|妹妹|妻子|丈夫|儿子|女儿|母亲|父亲|邻居|同事|朋友|友人|随访|由|请|与|经"
    "|孙子|孙女|外孙|外孙女|重孙|老伴|爱人|我妈|我爸|我儿子|我女儿|舅舅|姑姑|弟|妹|男友|女友|室友"
    "|保姆|护工|陪护"
    "|民警|辅警|警察|消防员|网格员|村长|书记|法官|教练|翻译|陪同|致|呈|转告|通知|家长|亲属|同胞|司机|老师|同学|学生|工友|战友|房东|养父|养母|继父|继母"
    "|岳父|岳母|婆婆|公公"
)
# Labels before a colon: what comes after is a name whatever its signs are.
_LABELS = (
    rf"{_H}{{0,4}}(?:姓\s*名|医师|医生|大夫|护士|助理|主任|教授|[一二三]助|术者|手术者|主刀"
    rf"|麻醉师|联系人|监护人"
    "|签名|签字|记录者|记录人|患者|病人|患儿|家属|采样人|检验者|审核者|核对者|报告者|申请人"
    "|代诉人|陪同人员"
    "|责任人|经办人|紧急联系人|母亲|父亲|丈夫|妻子|配偶|子女|产妇|新生儿|供者|受者|操作者|执行者"
    "|巡回|器械"
    "|技师|药师|值班|录入|随访人|介绍人|推荐人)"
)
_NOBODY = (
    "(?!无|不详|未|同上|同前|本人|自己|父|母|夫|妻|子女|父子|母女|母子|已|拒|见|详"
    "|暂|否|男|女|主|副|签|家属|其)"
)
# Signs that are doubled in words: 天天, 慢慢, 妈妈.
_TWICE = (
    "[天常慢妈爸奶爷姥公婆叔伯哥姐弟妹舅姑姨谢渐刚偶往时看试仅多稍早久频逐个人年月日每处种次深轻重好大小高低缓隐阵隆默匆足白通"
    "苍茫汪滔纷斤条步节层件样恰悄微紧满整]"
)
# What follows a name: no part of it.
_AFTER = (
    rf"[\s，。；、：:,.()（）　]|$|{TITLES}|自述|因|拒绝|否认|代诉|陪同|于|谈话|建议|开具"
    "|发现|的|书写|会诊"
    "|负责|来电|要求|同意|签|电话|诉|称|无|系|跌|患|有|在|被|行|和|与|及|说|入院|出院|就诊|记录"
    "|审核|报告|指示"
    "|查房|执行|男|女|家|现|已|告知|为|\\["
    "|昨|今|明天|曾|将|自|至|到|从|来|送|提|表|教授|\\d|[A-Za-z“”/]|一般|神志|意识|同学|住|接"
    "|反映|补充|口述|述|转"
)
_GIVEN = rf"{_H}{{2}}(?={_AFTER})|{_H}(?={_AFTER})"
# Words that begin like a surname.
_NO_NAME = (
    "(?!查房|查体|查看|随访|常规|高血|黄疸|石膏|白细|何时|安排|时间|方可|时候|应当|应予"
    "|高热|于[本下上]|安徽|江苏|江西|宁夏|后|高烧|高度|高龄|高危|黄染|白带|石淋|明显|平素|平时"
    "|常有|成年|时有|单侧|双侧|双下|双肺|左侧|右侧"
    "|水肿|花生|步态|步行|满月|空腹|农民|关节|车祸|应用|于今|于昨|于术|余无|仰卧|安静|康复|干咳"
    "|充血|家属|家人"
    "|支气|温度|牛奶|马上|鱼刺|麻醉|麻木|经期|经过|经治|经常|胡须|何处|任何|许多|曾有|曾因|曾患"
    "|曾用|卫生"
    "|强直|全身|全天|全麻|方才|相关|房颤|终末|向家|包块|皮疹|易怒|利尿|计划|管路|管床|管理|双眼"
    "|边缘|贺"
    "|谢谢|于主|王不留|成功|解释|解救|解除|应避|应用|应在|应该|施行|申请|班医|值班)"
)
_NAME = rf"{_NO_NAME}(?:(?:{COMPOUND})(?:{_GIVEN})|[{_SURNAMES}](?:{_GIVEN}))"
_NUMERAL = "[〇零一二三四五六七八九十廿卅]"
_REGION = (
    "(?:省|市|区|县|旗|州|镇|乡|村|路|街|道|巷|弄|号院|号楼|号|幢|栋|单元|室|楼|大厦|广场"
    "|花园|小区)"
)
_LIVES = (
    "家庭住址|通讯地址|联系地址|户籍地址|寄件地址|工作单位|住址|地址|现住址|现住|家住"
    "|住在|居住于|籍贯|出生地|寄往|住"
)

EVERY_SURNAME = "".join(sorted(set(_SURNAMES) | set(_RARE) - set("后那有")))
ANY_SURNAME = "".join(sorted((set(_SURNAMES) | set(_RARE)) - set(_NO_SURNAME + "后那有")))
_HOLIDAY = (
    "元旦|除夕|春节|元宵|清明|五一|端午|七夕|中秋|国庆|重阳|冬至|圣诞|腊八|小年|元月|劳动节|儿童节"
)
_PLACES = (
    "北京|上海|天津|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南"
    "|广东|海南|四川|贵州"
    "|云南|陕西|甘肃|青海|台湾|内蒙古|广西|西藏|宁夏|新疆|香港|澳门|广州|深圳|珠海|佛山|东莞|中山"
    "|惠州|汕头|南京|苏州"
    "|无锡|常州|南通|扬州|徐州|镇江|杭州|宁波|温州|嘉兴|绍兴|金华|台州|合肥|芜湖|福州|厦门|泉州"
    "|漳州|南昌|九江|赣州"
    "|济南|青岛|烟台|潍坊|临沂|郑州|洛阳|开封|南阳|武汉|宜昌|襄阳|荆州|长沙|株洲|湘潭|岳阳|衡阳"
    "|南宁|桂林|柳州|海口"
    "|三亚|成都|绵阳|宜宾|泸州|贵阳|遵义|昆明|大理|丽江|拉萨|西安|咸阳|宝鸡|延安|兰州|天水|西宁"
    "|银川|乌鲁木齐|石家庄"
    "|唐山|保定|邯郸|秦皇岛|太原|大同|呼和浩特|包头|沈阳|大连|鞍山|长春|哈尔滨|齐齐哈尔|大庆|台北"
    "|高雄|台中"
)

PATTERNS: Patterns = {
    "NAME": (
        rf"(?:{BEFORE})[（(]?[:：]?\s*(?P<x>{_NAME})",
        rf"(?:^|[，。；、\s　])(?P<x>{_NAME})(?=(?:{TITLES})"
        rf"|[，,]\s*(?:男|女|汉族|\d{{1,3}}岁))",
        rf"(?<![主当及随同届值白夜谢])(?P<x>(?!于主|谢谢)(?:{COMPOUND}|[{ANY_SURNAME}]))(?=(?:{TITLES}))",
        rf"(?:^|[，。,;；：:\s]|我家|[叫是]|昵称|小名)(?P<x>(?P<twice>(?!{_TWICE}){_H})(?P=twice))"
        r"(?=[，,。]|[今昨夜的说又也发身打不没对爱跟和]|\d|妈|爸|$)",
        rf"(?:^|[，。；、：:\s　（(]|科|室|院|病区|组|的|了|跟|给|找|让|叫|是|把|被|对|{TITLES})"
        rf"(?P<x>{_NO_NAME}(?:{COMPOUND}|[{ANY_SURNAME}]){_H}{{1,2}})"
        rf"(?=(?:{TITLES})|\s+\d{{5}}|\s*[,，、（(]\s*(?:男|女|编号|住院|病历|病案|电话|身份证"
        rf"|工号|床|\d{{1,3}}\s?岁))",
        rf"(?:{_LABELS})\s*[:：]\s*(?P<x>{_NOBODY}{_H}(?:[ 　]?{_H}){{1,3}})"
        rf"(?=[\s，。；、,;()（）]|$)",
        rf"(?:患者|患着|病人|患儿|产妇|孕妇|老人|同胞|学生)(?P<x>{_NOBODY}{_H}{{2,4}})"
        r"(?=\s*[，,、（(]\s*(?:男|女|\d{1,3}\s*(?:岁|天|月)|生于|\d{4}年|住院号|系|主因|出生))",
        rf"(?:{BEFORE})(?P<x>阿{_H})",
        rf"(?:^|[，。；：\s])[老小](?P<x>[{ANY_SURNAME}])(?=头|[说诉讲称问今昨又的]|{TITLES})",
        rf"(?:^|[，。；：\s])(?P<x>[小阿]{_H}{{1,2}})(?=的?(?:丈夫|妻子|儿子|女儿|父亲|母亲|爸|妈|爷爷|奶奶))",
        r"(?:^|[\s：:，。；患者])(?P<x>[A-Z][a-z]+ [A-Z][a-z]+(?:-[a-z]+)?)(?=[（(，,。])",
        rf"(?:^|[，。；,;：:\s床])(?P<x>[{ANY_SURNAME}])(?=[×xXＸ○*某]{{1,2}}(?:[，,。、\s因诉男女已拒]|先生|女士|$))",
        # Whatever stands between a mark and 先生 is one's name, and what before 哥 or 嫂 no kin is.
        rf"(?:^|[，。；,;：:\s])(?P<x>(?![这那各一两几本该其某您你我他她])(?:(?![位名的是和与的]){_H}){{2,4}})"
        r"(?=先生|女士|太太|小姐)",
        r"(?:^|[，。；,;\s])(?P<x>[^\W\d大小表堂二三四五亲老帅哥姐嫂的]"
        r"(?:哥|姐|嫂|婶))(?=[的说今昨又也，,还]|$)",
        # 老 and 小 before a surname that no word has behind them.
        rf"(?P<x>(?<!{_H}[大中])[老小][王李张刘陈杨赵周吴徐孙胡朱郭何罗郑梁宋唐韩冯邓曹彭肖董潘袁蔡蒋杜程魏吕卢姚沈姜崔谭陆汪范廖"
        r"贾韦邹熊秦薛侯郝邵谢庄庞龚樊顾戴夏邱康史贺万钱严覃赖莫])(?!氏|某|医|护|教|主|老师|先|女|学|子|便|细|头肌)",
        r"(?P<x>[A-Z]某{1,2})(?![\u4e00-\u9fff]?[种型类])",
        rf"(?P<x>[{ANY_SURNAME}][×＊*○]{{1,2}}{_H}?)(?=[，,。、\s因诉男女之的已]|$)",
        rf"新生儿(?P<x>[{EVERY_SURNAME}]{_H}{{0,2}})(?=之[子女])",
        rf"(?P<x>{_H}{{2,6}}[·•]{_H}{{2,8}}?)(?=[，。；、\s]|$)",
    ),
    "DATE": (
        r"(?<!\d)(?:\d{4}|\d\d)\s?年\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?[日号])?",
        rf"{_NUMERAL}{{4}}年{_NUMERAL}{{1,2}}月(?:{_NUMERAL}{{1,3}}[日号])?",
        rf"(?:(?:\d{{4}}年|今年|去年|前年|本年|同年)?(?:{_HOLIDAY})节?)(?:前夕|当天|期间)?",
        rf"(?:今年|去年|前年|本年|同年|明年)(?:\d{{1,2}}月(?:\d{{1,2}}[日号])?|[正冬腊{_NUMERAL[1:-1]}]{{1,2}}月(?:[初十廿]?{_NUMERAL}{{1,2}}[日号]?)?)",
        r"(?:[这上下本]?(?:周|星期)[一二三四五六日天])[（(]?\d{1,2}月\d{1,2}[日号][）)]?",
        r"(?<!\d)(?:1[0-2]|[1-9])月(?:底|初(?!步|始)|中旬|上旬|下旬|末)|[上下本这]个?月(?:初|十|廿)[一二三四五六七八九十]",
        r"(?<![\d/.-])(?P<x>(?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01]))"
        r"(?=(?:做|撤|拆|拍|查|复查|复诊|手术|出院|入院|来院|发病|开始|起病|转))",
        r"(?<!\d)\d{1,2}\s?月\s?\d{1,2}\s?[日号]",
        rf"(?:{_NUMERAL}{{1,2}}月{_NUMERAL}{{1,3}}[日号])",
        rf"(?<![{_NUMERAL[1:-1]}第])(?P<x>(?:十|二十|三十|廿|卅)[一二三四五六七八九]?[日号])(?!间|常|子|[床楼])",
        r"(?<![\d/.])(?P<x>\d\d[/.](?:0?[1-9]|1[0-2])[/.](?:0?[1-9]|[12]\d|3[01]))"
        r"(?=\s*(?:[入出转]院|就诊|复查|手术|复诊|来诊|\d{1,2}[:：]\d\d))",
        r"(?<![\d.])(?P<x>(?:0?[1-9]|1[0-2])\.(?:0[1-9]|[12]\d|3[01]))"
        r"(?=\s*(?:\d{1,2}[:：]\d\d|[上下]午|晚上?|凌晨|[入出转]院|复查|复诊|就诊|手术))",
        r"(?:农历|阴历)?(?:[正二三四五六七八九十冬腊]|十[一二])月(?:初|十"
        r"|廿)[一二三四五六七八九十]",
        r"(?:[上下本这当]个?月|[（(]|周[一二三四五六日天]|星期[一二三四五六日天])"
        r"(?P<x>\d{1,2}[号日])",
        r"[12lI][\dOo]{3}年[\dOolI]{1,2}月[\dOolI]{1,2}[日号]",  # as scanned
    ),
    "ID": (
        r"(?P<x>\d{3,8}\*{4,}\d{0,3}[\dXx])",
        r"(?<![A-Za-z\d])[A-Z]\d{8}(?![A-Za-z\d])",
        r"(?<![A-Za-z\d-])[A-Z]{2,3}-\d{4,}[\d-]*",
        r"[\u4e00-\u9fff]字第\d{4,}号",
        r"邮编[:：]?\s*(?P<x>\d{6})(?!\d)",
        r"(?:(?<![批型])号码?|编号|卡号|卡|证|码|(?<![A-Za-z])(?:ID|id)|(?<![A-Za-z])No\.?|NO\.?)"
        r"(?:为|是)?[:：]?\s*"
        r"(?P<x>[A-Za-z]{0,4}[-_ ]?(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9][A-Za-z0-9_/-]{3,})"
        r"(?![%A-Za-z0-9])",
        r"(?P<x>[京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼]"
        r"[A-Z][·•. ]?[A-Z0-9]{5,6})",
    ),
    "ADDRESS": (
        rf"(?:^|[，。；：:、\s在住于至往到从回])(?P<x>{_H}{{2,12}}?(?:路|街|大道|道|巷|弄|胡同|村"
        rf"|里|小区|花园|苑)(?:[东西南北中]路|{_NUMERAL}段)?"
        r"\d+[号弄栋幢组][0-9A-Za-z号楼室单元层栋幢-]*)",
        rf"(?:在|于|来自|回|去|到|从|赴|籍贯|返|往|至|由)(?P<x>(?:{_PLACES})(?:省|市)?"
        rf"(?:{_H}{{1,6}}?(?:市|区|县|镇|乡|村))?)(?!{_H}{{0,8}}(?:医院|大学|医科|学院))",
        rf"(?:^|[，。；、：:,;（(\s自从])(?P<x>(?:{_PLACES})(?:省|市|自治区)?(?:{_H}{{2,3}}?[市县区镇乡村旗]?)??)"
        r"(?=人(?:$|[，。；,;])|籍|的?(?:牧民|农民|居民|村民|渔民|游客|务工))",
        rf"(?:{_LIVES})[:：]?\s*(?P<x>{_H}{{2,}}?{_REGION}[\u4e00-\u9fffA-Za-z0-9-]*)",
        rf"(?P<x>{_H}{{2,8}}?(?:省|自治区|市)"
        rf"{_H}{{2,8}}?(?:市|区|县){_H}*?{_REGION}?[\u4e00-\u9fff0-9-]*?(?:号|室|楼))",
    ),
}


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
    r"|得了|得过|最近|总是|一直|交代|交待|说明|解释|沟通|夫妇|夫妻|父母|父亲|母亲|妻子|丈夫|儿子|女儿|家属|家长|本人|先|哭|吵|怀|孕|备"
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
_NOT_A_PERSON = re.compile(
    r"(?:王不留|患者|病人|患儿|家属|家人|家长|本人|自己|他人|无名|不详|同前|同上|医[生师]|护士|主任|教授|大夫|先生|女士"
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
    if _NOT_A_PERSON.match(line, at):
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
