"""
Ordinary English words: what a capital letter alone does not make a name of.

Used twice: a name part that is an ordinary word is not searched for on its own, and text whose
capitals are all ordinary words needs no language model. Names that are also words (Will, Rose,
Mark) are left out of the words on purpose, unless they start sentences all the time.
"""

from __future__ import annotations

_COMMON = """
a able about above accept access according account accounts across act action active activity add
added adding additional address addresses admin after again against age agent ago agree ahead all
allergic allergy allow almost alone along already also alternatively although always am among
amount an analysis and another answer answers any anyone anything api app application apply
appointment approach are area around article as ask asked asking asks at attached attend available
average avoid away back background bad balance bank based basic be because become bedroom before
began begin behavior behind being believe below best better between beyond big bill billing
birthday black block blocked blue board book booked booking bot both bought box break bring broken
brother brought budget bug build building built business but buy by cache call called calls came
can cancel cancelled cannot car card cards care case cases cat catch category cause center central
certain chance change changed changes channel chapter charge chat cheap check child children
choice choose city class clean clear click client close closed code coffee cold collection college
color column come comes coming command comment common community company compare complete computer
concert condition conference confirm confirmed consider contact contacted contains content context
continue contract control conversation cool copy correct cost could count country couple course
cover create created credit cup current currently customer customers daily dark data database date
dates daughter day days deal dear debug decided decision deep default delete deliver delivered
delivery department describe description design desk detail details developer did difference
different difficult dinner direct directed director disabled discuss discussed do doctor document
does dog doing done door double down download draft drink drive driver due during each earlier
early easy eat economy education effect either email emails employee empty enabled end ends
energetic engine engineer english enjoy enjoys enough enter entire entry environment equal error
errors especially even evening event events ever every everyone everything exactly example
excellent except exception expect expected expensive experience expires explain explained extra
eye face fact failed failure fair fall false family far fast father favorite favourite fax feature
feel few field figure file files final finally finance financial find fine finish finished fire
first fish flight flights floor focus follow followed following follows food for form format
former forward found four free frequently fresh friend friends from front full function further
future game games gave general generally get gets getting girl give given gives giving glad global
go goal goes going gold gone good goodbye got government great green greetings group grow guest
guide had half hand happen happened happy hard has hate hates have having he head health hear
heard heart hello help helped her here hers hey hi high higher him himself his history hit hold
holiday home hope hospital hot hotel hour hours house how however human hundred husband i idea if
image important in include included includes including increase indeed info information input
inside instead insurance interest interested interesting internal international internet interview
into introduction invoice is issue issues it item items its itself january job join joined just
keep keeps key kid kids kind kindly kitchen knew know known knows lab language large last late
later latest law lead learn learned learning least leave left length less let letter level library
life light like liked likes limit line lines link list listed listen little live lives living loan
local location log logs long longer look looked looking looks loses lost lot love loved loves low
lower lunch made maiden mail main major make makes making man manager many market match matter
maybe me meal meals mean means meanwhile meat medical meet meeting meetings member members memory
men mentioned menu message messages met method middle might mind mine minute minutes missing
mission mobile mode model modern moment money month months more morning most mother move moved
movie movies moving mr mrs ms much music must my myself name named names near nearly necessary
need needed needs neither network never new news next nice night no nobody none nor normal north
not note noted notes nothing notice now null number numbers object of off offer offers office
official often oh ok okay old on once one ones online only open opened option options or order
ordered orders organization original other others otherwise our ours out output outside over
overall own owner package page paid pain paper parent parents part partner parts party pass passed
password past patient pay payment payments people per perfect perhaps period permission person
personal phone photo pick picture pin place places plan plane planned plans plant play played
plays please plus point policy popular position possible post power practice prefer preferred
prefers prepare present pretty previous price prices private probably problem problems process
product production products profile program project projects promised property provide provided
provides public purchase purchased put quality quarter query question questions quick quickly
quite ran rate rather rating read reading ready real really reason receipt receive received recent
recently recommend record red reference refund regarding regards regular related release remember
remembers remind reminder remove rent reply report reported request requested requests require
required reservation reset response rest restaurant result results retired return returned returns
review right road role room rule rules run running runs safe said sale sales same sat save saw say
saying says scale school score search seat seats second section security see seem seems seen
select selected self sell send sends senior sent sentence separate series server service services
session set setting settings setup seven several shall share she ship shipped shipping shoes shop
short should show showed shows side sign signed similar simple simply since singing single sir
sister sit site situation six size sleep slow small so software sold some somebody someone
something sometimes son song soon sorry sort sound source south space speak special specific spend
spent spoke staff stage stand standard start started starting starts state statement states
stating station status stay step steps still stop stopped store story street strong student study
stuff style subject such suggest suggested suggestion summary support sure surely system systems
table take taken takes taking talk talked tall task tasks tea teacher team tell tells ten term
test tested testing tests text than thank thanks that the their theirs them then there therefore
these they thing things think third this those though thought thousand three through thus ticket
tickets till time timeout times title to today together token told tomorrow tonight too took tool
top total touch towards town track train transfer travel traveling travels trial tried trip
trouble true trust try trying turn turned twice two type under understand unfortunately unit
united university unless unlike until up update updated updates upon us usage use used useful user
username users uses using usually vacation valid value values various vegan vegetarian vehicle
version very via video view visit visited visiting volunteer wait waiting wake walk want wanted
wants warning was watch watched water way we website week weekend weekly weeks weight welcome well
went were west what whatever when whenever where whereas whether which while white who whole whom
whose why wife will window windows wish with within without woman women wonder word words work
worked working works world worried would write wrong wrote yeah year years yes yesterday yet you
young your yours yourself zero zone
"""

_CALENDAR = """
apr aug august autumn christmas dec december easter feb february fri friday jan january jul july
jun june mar march may mon monday nov november oct october sat saturday sep sept september spring
summer sun sunday thu thursday tue tuesday wed wednesday winter
"""

_TECHNICAL = """
ai amazon android anthropic api apple asap aws azure ceo cfo chf cli cpu crm css csv cto delete
docker erp error eta eur exception false faq from gbp get git github gitlab gmt golang google gpu
hr html http https id ids insert invoice ios ip iso java javascript jpy json kafka keyerror kpi
kubernetes langchain langgraph linux llm macos mem0 microsoft none null nullpointer openai os
patch pdf php post postgres postgresql put python qa qdrant qty rag ram redis roi ruby
runtimeerror rust sdk select sku sla slack sql sqlite ssd stripe subtotal tax tcp todo toml total
traceback true typeerror typescript udp ui update uri url usd utc uuid ux valueerror vat vip where
windows xml yaml zoom
"""


def listed(words: str) -> frozenset[str]:
    """Return the words of a text: hundreds of them read better so than as strings."""
    return frozenset(words.split())


ORDINARY: frozenset[str] = listed(f"{_COMMON} {_CALENDAR} {_TECHNICAL}")
"""Lower-case words that are not taken for a person's name on their own."""
