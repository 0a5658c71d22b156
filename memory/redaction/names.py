"""
Names that rarely mean anything else, from many languages: the hint of last resort.

A given name in here counts when it is capitalised, or when its text has no capitals at all; a
family name when it is capitalised. Names that are everyday words or places (Will, Rose, Paris,
Jordan) count only next to another name. No list of names is complete or fair to all: a language
model finds what is not in here.
"""

from __future__ import annotations

from .words import listed

_GIVEN = """
aaron abby abdul abdullah abigail adam adela adele adrian adriana agata agatha agnes agnieszka
ahmad ahmed aidan aiko aileen aisha akash akira alan albert alberto alejandra alejandro aleksandr
aleksandra alessandra alessandro alex alexander alexandra alexandre alexei alfred alfredo alice
alicia alina alison allison alma alonso alvaro amanda amara amelia amelie amina amir amit amy ana
anastasia anders andre andrea andreas andrei andrej andres andrew andrzej andy angela angelica
angelina angelo anil anita anja ann anna anne annette annie annika anselm anthony antje antoine
antonia antonina antonio antti anya arjun arlene armando arnold arthur arturo asha ashley astrid
audrey aurelia axel ayesha barbara barry bartosz beata beate beatrice beatriz becky ben benedict
benedikt benjamin bernadette bernard bernardo bernd bertha bertrand bethany bettina betty beverly
bianca bjorn blanca bogdan bonnie boris brad bradley brandon brenda brendan brent brett brian
bridget brigitte britta bruce bruno bryan burak caitlin caleb calvin camila camilla camille
candice carina carl carla carlo carlos carmen carol carole carolina caroline carolyn carsten casey
caspar cassandra catarina catherine cathy cecilia cedric celeste celia celine cesar chad chandra
charles charlie cheryl chiara chloe chris christa christian christiane christina christine
christoph christophe christopher cindy claire clara clarence clarissa claude claudia claudio
clemens clement clifford clint clyde colette colin colleen conrad constance consuelo corinna
corinne cornelia cornelius craig cristian cristiano cristina curtis cynthia daisuke damian damien
dana daniel daniela daniele danielle danny daphne darlene darren darryl dave david dawid deborah
debra deepak deirdre delia denise dennis derek desiree detlef diana diane didier dieter dietrich
dimitri dimitris dina dirk dmitri dmitry dolores domenico dominic dominik dominika dominique
donald donna doreen doris dorota dorothea dorothy doug douglas dwayne dylan edgar edith edmund
eduard eduardo edward edwin eileen einar ekaterina elaine eleanor elena eleni eliana elias elijah
elin elisa elisabeth elise elizabeth ella ellen elliot eloise elsa elvira emanuel emanuele emil
emile emilia emiliano emilie emilio emily emma enrico enrique eric erica erich erik erika erin
ernest ernesto ernst esperanza esteban estelle esther ethan etienne eugene eugenia eva evan evelyn
ewa fabian fabio fabrice fatima federico felicia felipe felix ferdinand fernanda fernando filip
filippo fiona florian frances francesca francesco francine francis francisca francisco francois
francoise franz franziska fred freddie frederic frederick frederik frieda friedrich fritz gabriel
gabriela gabriele gabrielle gail gareth gary gaston gavin geert genevieve geoff geoffrey georg
george georges georgina gerald geraldine gerard gerardo gerd gerda gerhard gertrude giacomo
gianluca gilbert gilles gina giorgio giovanna giovanni giulia giuseppe gladys glenda glenn gonzalo
gordon graham greg gregor gregorio gregory greta gretchen grzegorz guido guillaume guillermo
gunnar gunther gustav gustavo gwen gwendolyn hakan halina hanna hannah hannelore hans harald
harold harriet harry haruka haruto hassan hector hedwig heidi heike heiko heinrich heinz helen
helena helene helga helmut hendrik henri henrietta henrik henrique henry herbert herman hermann
hideo hilary hilda hiroshi holger howard hubert hugh hugo ian ibrahim ida ignacio igor ilona ilse
imran ines inga inge ingeborg ingrid irena irene irina irma irving isaac isabel isabella isabelle
ismael ivan ivana ivo jacek jackie jacob jacqueline jacques jaime jakob jakub james jamie jana
jane janet janice janina janine janusz jared jaroslav jasmin jason javier jeanette jeanne jeff
jeffrey jelena jennifer jenny jens jeremy jerome jerry jerzy jessica jesus jill jim jimmy joan
joana joann joanna joanne joao joaquin jochen jodie joe joel joerg johan johann johanna johannes
john johnny jolanta jon jonas jonathan jorg jorge jose josef joseph josephine josh joshua joyce
juan juana juanita judith judy juergen jukka julia julian juliana juliane julie julien juliet
julio julius jurgen justin justine kai kamil kamila karen karim karin karina karl karla karol
karolina karoline kaspar katarina katarzyna kate katerina katharina katherine kathleen kathrin
kathryn kathy katie katja katrin katrina kazimierz keith kelly kelvin ken kenji kenneth kerry
kerstin kevin khadija khalid kieran kim kimberly kirsten klara klaus konrad konstantin kristen
kristin kristina kristine krystyna krzysztof kumar kurt kyle larry lars lasse laszlo latoya laura
lauren laurence laurent lauri laurie lawrence leah leandro lena lennart leo leon leonard leonardo
leonie leonor leroy leslie leticia lewis liam lidia lieselotte liliana lillian linda lindsay
lindsey lisa liselotte lois lorenz lorenzo loretta lorraine lothar louis louise luc luca lucas
lucia luciana luciano lucie lucille lucy ludmila ludwig luigi luis luisa luise lukas lukasz lutz
luz lydia lynn maciej madeleine madeline magda magdalena magnus mahmoud maja malcolm malgorzata
malik manfred manuel manuela marc marcel marcela marcelo marcia marcin marcio marco marcos marcus
marek margaret margarete margarita margaux margit margot maria mariam mariana marianne marie
mariella marija marilyn marina mario marion marisa marisol marius mariusz marjorie markus marlene
marta martha martin martina marvin mary maryam mateo mateusz mathias mathieu mathilde matt matteo
matthew matthias maureen maurice mauricio maxime maximilian megan meghan mehmet mei melanie
melinda melissa meredith michael michaela michal michel michele michelle mickael miguel mika
mikael mikhail mikko mildred milena milos mina minh miranda mireille miriam miroslav mitchell
mohamad mohamed mohammad mohammed moira molly mona monica monika monique morgan moritz muhammad
murat muriel mustafa myriam myrtle nadia nadine nadja naoko naomi natalia natalie natasha nathalie
nathan nathaniel neil nelly nicholas nicola nicolas nicole niels nikita niklas nikola nikolai
nikolaj nikolas nikolaus nils nina noah noel noelle nora norbert norma norman nuno octavia odette
olaf olav ole oleg olga oliver olivia olivier omar orlando oscar oskar osman oswald ottilie otto
pablo pamela paola paolo pascal pascale patricia patrick patrik paul paula paulina pauline paulo
pavel pawel pedro peggy penelope per percy perry petar pete peter petr petra philip philipp
philippa philippe phillip phoebe phyllis pia pierre pietro pinar piotr priscilla priya rachel
radoslav rafael rafaela raghav rahul raimund rainer rajesh ralf ralph ramon ramona randall randy
raphael raquel rasmus raul ravi raymond rebecca regina reginald reiner reinhard renata renate rene
renee ricardo riccardo richard rita robert roberta roberto rocio roderick rodney rodolfo rodrigo
roger roland rolf ron ronald ronja ronnie rosa rosalie rosalind rosanna rosario rosemarie rosemary
rosie ross roxanne roy ruben rudolf rudolph rupert russell ruth ryan sabine sabrina sadie salvador
salvatore sam samantha samir samira samuel sandra sandrine sandro sanjay santiago sara sarah
sascha saskia sean sebastian sergei sergej sergio seth shane shannon sharon shaun shawn sheila
shelley sherry shirley sibylle siegfried sigrid silke silvana silvia silvio simon simona simone
sofie solveig sonia sonja sonya sophia sophie soren stacey stacy stan stanislav stanley stefan
stefania stefanie stefano steffen stella stephan stephane stephanie stephen steve steven stewart
stuart sunil susan susana susanna susanne suzanne sven svenja svetlana sybille sylvia sylvie
tabitha tadeusz takashi tamara tania tanja tanya tara tariq tatiana tatjana terence teresa
teresita terrence terri terry thea thelma theo theodor theodore theresa therese thierry thilo
thomas thorsten tiago tiffany tim timo timothy tina tobias todd tom tomas tomasz tommaso tommy
tony torben torsten tracey tracy travis trevor tristan troy trude tyler tyrone udo ulf ulrich
ulrike ursula ute uwe vadim valentin valentina valeria valerie vanessa vasily vaughn vera verena
vernon veronica veronika veronique vicente vicki vicky victor vijay viktor viktoria vincent
vincenzo vinicius viola violeta virgil vitor vittoria vivian viviana viviane vladimir vladislav
volker walid walter waltraud wanda warren wendy werner wesley wilbur wilfried wilhelm wilhelmina
willem william willie wilma winston wojciech wolfgang wolfram xavier ximena yan yannick yasmin
yasmine yolanda yosef youssef yuki yuri yusuf yves yvette yvonne zachary zainab zbigniew zdenek
zeynep zoe zofia zoltan zuzana
"""

_FAMILY = """
abramov adams aguilar ahmed akhtar albrecht alexander ali allen almeida alvarez andersen anderson
andersson andrews arnold arroyo ayala bailey baker bakker baldwin banerjee barbosa barnes barnett
bauer becker beckett bell bennett berger bergmann bernard bianchi blanco boucher bowers bowman
bradley brennan brooks bryant burke burns burton butler byrne cabrera campbell cardoso carlson
carpenter carroll carvalho castillo castro chang chapman chavez chen chopra choudhury christensen
clark clarke cohen coleman collins colombo conti contreras cooper costa cox cruz cunningham
daniels davies davis dawson delgado desai diaz dietrich dixon dominguez doyle dubois duncan dunn
dupont duran eaton edwards elliott ellis eriksson esposito estrada evans ferguson fernandes
fernandez ferrari ferreira figueroa fischer fisher fitzgerald fletcher flores fontaine foster
fournier franco fraser freeman fuchs fuentes fujita gallagher garcia gardner garner garrett garza
gibson gilbert girard gomes gomez goncalves gonzales gonzalez goodman gordon gorski graham graves
griffin gupta gustafsson gutierrez guzman hahn hamilton hansen hanson harper harris harrison hart
hartmann harvey hassan hawkins hayes hebert henderson hernandez herrera hicks higgins hoffman
hoffmann holmes horvath howard howell huang huber hudson hughes hussain hwang ivanov ivanova iyer
jacobs jenkins jensen jimenez johansson johns johnson johnston jones jorgensen joshi kaminski
kapoor karlsson katz kaur keller kelley kennedy khan kim klein kobayashi koch kowalski kozlov
kraus krause krueger kumar kuznetsov lambert larsen larson lawson leblanc lefebvre lehmann
lindberg lindqvist lopez lund madsen maier malhotra marino marquez marrero marshall martinez
matsumoto mayer mccarthy mcdonald mehta meier mendes mendez mendoza meyer meyers mitchell molina
moore morales moreau morel moreno moretti morris morrison mueller muller munoz murphy murray myers
nakamura navarro neumann newman nguyen nielsen nilsson nowak obrien ochoa okafor oliveira olsen
olson ortega ortiz owens pacheco padilla patel patterson pedersen pereira perez perkins peters
petersen peterson petrov pham phillips popescu popov powell ramirez ramos rao rasmussen reddy reid
reyes reynolds ricci richards richardson richter rivera roberts robertson robinson rodrigues
rodriguez rogers rojas romano romero rosenberg rossi rousseau ruiz russo ryan saito salazar
salinas sanchez sanders sandoval santos sato schmidt schmitz schneider schroeder schulz schwartz
schwarz serrano shah sharma shaw shimizu silva simmons simpson singh smirnov smith snyder soares
sokolov solovyov sorensen soto souza spencer stephens stevens stewart sullivan suzuki svensson
swanson takahashi tanaka thompson torres tran tremblay turner vargas vasquez vazquez vega vidal
villanueva volkov wagner wallace walsh walters wang watkins watson weaver weber webster weiss
werner williams williamson wilson wong wright wu yamada yamamoto yang yilmaz zhang zhao zimmerman
zimmermann
"""

_ALSO_WORDS = """
alba amber angel april art ash august austin autumn bay bea bill bob brook brooke buck carter
chance charity charlotte chase chelsea cherry chip chuck clay cliff clover coral crystal daisy
dakota dale dallas dawn dean denver destiny dick diego dolly don drew duke dusty earl eden eve
faith fern flora florence florida forest frank gene geneva georgia ginger glen gloria grace grant
guy hail hank harmony hazel heath heather holly hope hunter iris ivy jack jackson jade jan jasmine
jay jean jersey jesse jewel jordan joy june junior king lance lane lee levi liberty lily lincoln
linden logan lotus lucky luna madison major maple mark marsha mason max may mercedes mercy mike
milan miles misty moses nelson nick noble norm normal olive paige paris pat patience pearl penny
phoenix pierce pilar piper poppy porter prince ray reed reese rich river rob robin rocky rod roman
rose ruby rusty ryder sage salma sandy savannah scott shepherd sidney sienna skip sky skyler sofia
sonny sterling stone storm sue summer sunny sydney taylor ted temple terra tiger till toni trinity
tucker van victoria vienna violet virginia wade walker ward wayne will willow winter wolf woody
"""

AMBIGUOUS: frozenset[str] = listed(_ALSO_WORDS)
"""Given names, lower case, that are also words or places: they need another name beside them."""

FAMILY: frozenset[str] = listed(_FAMILY)
"""Family names, lower case, without accents, that count where they are capitalised."""

GIVEN: frozenset[str] = listed(_GIVEN)
"""Given names, lower case, without accents, that count on their own."""
