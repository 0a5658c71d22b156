"""
Made-up texts with e-mail addresses, telephone numbers and postal addresses, in 25 languages.

Two halves with different sentences and values: rules are made by the first, the second measures
them. In a shape, ``#`` is any digit, ``%`` one from 1 to 9 and ``&`` one from 2 to 9.
"""

# ruff: noqa: E501, RUF001 - samples are as long as they are, in the letters of their languages

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import NamedTuple


class Sample(NamedTuple):
    """A text with one identifier: the kind of it, how it is written, and where it stands."""

    text: str
    start: int
    end: int
    language: str
    kind: str


class Language(NamedTuple):
    """What the texts of a language are made of; each pair is the two halves."""

    phones: tuple[list[str], list[str]]
    announced: tuple[list[str], list[str]]
    bare: tuple[list[str], list[str]]
    addresses: tuple[list[str], list[str]]
    sentences: tuple[list[str], list[str]]
    at_dot: tuple[tuple[str, str], tuple[str, str]]


LANGUAGES = {
    "en": Language(
        (["(&12) &55-01##", "07### ######", "04## ### ###", "02# ### ####"], ["&12.&55.01##", "020 7### ####", "(0%) %### ####", "1-&12-&55-01##"]),
        (["call me at {} tonight", "My mobile: {}"], ["you can reach her on {}", "Tel. {}, ask for the desk"]),
        (["{} is the best way to get me", "thanks, {}"], ["that was {}, right?", "{}\nSee you soon"]),
        (["%# Larkspur Road, Millbrook, OR 97###", "1## Old Mill Lane, Apt %B", "Flat %, %# Harbour Street, Bristol BS# %QL", "%# Collins Street, Melbourne VIC 30##"], ["4## Kestrel Avenue, Fairview, TX 75###", "%# Thistle Close, York YO# %AB", "Unit %, %## Queen Street West, Toronto, ON M5V #A#", "%# MG Road, Indiranagar, Bengaluru 5600##"]),
        (["I live at {}.", "The parcel goes to {} on Monday"], ["Her new place is {}.", "Send the papers to {}, please."]),
        (("at", "dot"), ("AT", "DOT")),
    ),
    "de": Language(
        (["0%# %######", "01%# %#######", "0%##/%#####", "0%##-%### ###"], ["(0%#) %## ## ##", "01%## / ### ## ##", "0%### %####", "079 ### ## ##"]),
        (["Ruf mich unter {} an", "Tel.: {}"], ["Meine Handynummer ist {}.", "erreichbar unter {}"]),
        (["{} ist meine", "Danke! {}"], ["Ja, {}, abends.", "{}\nBis dann"]),
        (["Birkenweg %#, 1###5 Potsdam", "Am Mühlbach %a, 80%## München", "Lange Straße %#", "Rosengasse %/%, 10## Wien"], ["Schillerplatz %, 70### Stuttgart", "An der Alten Ziegelei %#, 48### Münster", "Ahornallee %#c", "Bahnhofstr. %#, 80## Zürich"]),
        (["Ich wohne {}.", "Lieferung an: {}"], ["Unsere neue Anschrift: {}", "Er ist nach {} gezogen."]),
        (("ät", "punkt"), ("at", "punkt")),
    ),
    "fr": Language(
        (["06 ## ## ## ##", "01.##.##.##.##", "0%########", "04## ## ## ##"], ["07-##-##-##-##", "05 ## ## ## ##", "07########", "02 ### ## ##"]),
        (["Appelle-moi au {} ce soir", "Tél. : {}"], ["Mon numéro de portable est le {}.", "joignable au {}"]),
        (["{} c'est le mien", "Merci, {}"], ["Oui, le {}.", "{}\nÀ bientôt"]),
        (["%# rue des Lilas, 690## Lyon", "% bis, avenue Jean Moulin, 750## Paris", "%# chemin du Vieux Moulin", "% impasse des Acacias, appt %#"], ["%# boulevard Voltaire, 440## Nantes", "%#, place de la Fontaine", "% allée des Tilleuls, bâtiment B, 310## Toulouse", "Rue de la Station %#, 10## Bruxelles"]),
        (["J'habite au {}.", "Livrez au {} svp"], ["Mon adresse : {}", "Elle a déménagé au {} hier."]),
        (("arobase", "point"), ("arobas", "point")),
    ),
    "es": Language(
        (["6## ### ###", "6## ## ## ##", "9%########", "+34 6########"], ["7## ### ###", "9## ## ## ##", "(0%%) 15-####-####", "55 %### ####"]),
        (["Llámame al {} por favor", "Teléfono: {}"], ["mi móvil es el {}", "Puedes contactarme en el {}"]),
        (["{} es el mío", "Gracias, {}"], ["Sí, el {}.", "{}\nUn saludo"]),
        (["Calle de los Olivos, %#, 280## Madrid", "C/ Mayor %#, 2º B", "Avenida de América %#, piso %", "Calle 4% # %#-##, Bogotá"], ["Plaza de la Encina, %, 460## Valencia", "Paseo del Prado %#, 3º izq.", "Av. Insurgentes Sur 1##, Col. Roma, 067## Ciudad de México", "Carrera %# No. ##-##"]),
        (["Vivo en {}.", "Envíalo a {} mañana"], ["Mi dirección es {}", "Nos mudamos a {} en mayo."]),
        (("arroba", "punto"), ("ARROBA", "PUNTO")),
    ),
    "it": Language(
        (["3## ### ####", "3## #######", "06 ########", "02-#######"], ["3## ## ## ###", "+39 3## #######", "0## ### ####", "3#########"]),
        (["Chiamami al {} stasera", "Tel. {}"], ["il mio cellulare è {}", "Mi trovi al numero {}"]),
        (["{} è il mio", "Grazie, {}"], ["Sì, il {}.", "{}\nA presto"]),
        (["Via dei Mille %#, 001## Roma", "Viale della Repubblica %#/B", "Piazza San Carlo %, 101## Torino", "Corso Garibaldi, %#"], ["Via Antonio Gramsci, %#, 401## Bologna", "Vicolo del Fico %", "Largo Augusto %, 201## Milano (MI)", "Strada Statale %#"]),
        (["Abito in {}.", "Spedire a {} entro lunedì"], ["Il mio indirizzo è {}", "Ci siamo trasferiti in {} ieri."]),
        (("chiocciola", "punto"), ("chiocciola", "punto")),
    ),
    "pt": Language(
        (["91# ### ###", "(11) 9####-####", "21# ### ###", "(%%) &###-####"], ["96 ### ## ##", "11 9#### ####", "+351 93# ### ###", "(21) 9 ####-####"]),
        (["Liga-me para o {} hoje", "Telemóvel: {}"], ["Meu celular é {}", "Fale comigo no {}"]),
        (["{} é o meu", "Obrigado, {}"], ["Sim, o {}.", "{}\nAté logo"]),
        (["Rua das Flores, %#, 4000-### Porto", "Avenida Paulista, 1##, apto %#, São Paulo - SP, 01310-###", "Travessa do Carmo, %, 2º Esq.", "R. Augusta, %##"], ["Largo do Rato, %, 1250-### Lisboa", "Alameda Santos, %##, bloco B, Campinas", "Praça da Alegria %#, 1250-###", "Av. Brasil, %##, Rio de Janeiro - RJ"]),
        (["Moro na {}.", "Envie para {} amanhã"], ["A minha morada é {}", "Mudámos para a {} em maio."]),
        (("arroba", "ponto"), ("ARROBA", "PONTO")),
    ),
    "nl": Language(
        (["06-########", "06 ## ## ## ##", "020-#######", "0%#-#######"], ["06 %### ####", "0%##-######", "04## ## ## ##", "+31 6 ########"]),
        (["Bel me op {} vanavond", "Telefoon: {}"], ["mijn mobiel is {}", "U kunt mij bereiken op {}"]),
        (["{} is van mij", "Bedankt, {}"], ["Ja, {}.", "{}\nTot dan"]),
        (["Molenweg %#, 1## AB Hilversum", "Prinsengracht %##, 1016 HX Amsterdam", "Lange Kerkstraat %a", "Beukenlaan %#"], ["Stationsplein %, 3511 ED Utrecht", "Oude Singel %##-%", "Dorpsstraat %#, 9000 Gent", "De Ruyterkade %#"]),
        (["Ik woon op {}.", "Bezorgen bij {} graag"], ["Mijn adres is {}", "We zijn verhuisd naar {} vorige week."]),
        (("apenstaartje", "punt"), ("at", "punt")),
    ),
    "pl": Language(
        (["5## ### ###", "6##-###-###", "22 ### ## ##", "+48 5## ### ###"], ["7## ### ###", "(12) ### ## ##", "88#######", "0-22 ### ## ##"]),
        (["Zadzwoń do mnie: {}", "tel. {}"], ["mój numer to {}", "kom. {} po 18"]),
        (["{} to mój", "Dzięki, {}"], ["Tak, {}.", "{}\nPozdrawiam"]),
        (["ul. Lipowa %#/%, 00-### Warszawa", "al. Jana Pawła II %#", "os. Słoneczne %/%#, 31-### Kraków", "ulica Długa %# m. %"], ["pl. Wolności %, 61-### Poznań", "ul. ks. Jerzego Popiełuszki %#B", "aleja Niepodległości %## lok. %", "ul. Nowy Świat %#, 80-### Gdańsk"]),
        (["Mieszkam przy {}.", "Proszę wysłać na {}"], ["Mój adres: {}", "Przeprowadziliśmy się na {} w maju."]),
        (("małpa", "kropka"), ("malpa", "kropka")),
    ),
    "cs": Language(
        (["60# ### ###", "+420 7## ### ###", "77#######", "2## ### ###"], ["72# ### ###", "5## ### ###", "+420 60#######", "73#-###-###"]),
        (["Zavolej mi na {} večer", "tel.: {}"], ["moje číslo je {}", "Mobil {}"]),
        (["{} je moje", "Díky, {}"], ["Ano, {}.", "{}\nS pozdravem"]),
        (["Dlouhá %#/%, 110 00 Praha 1", "Na Příkopě %#", "Masarykova třída %##, 602 00 Brno", "ulice Svobody %#"], ["Květná %##/%#, 301 00 Plzeň", "náměstí Míru %", "Sokolská %#, 779 00 Olomouc", "Pod Lipami %#"]),
        (["Bydlím na adrese {}.", "Pošlete to na adresu {}"], ["Moje adresa: {}", "Trvalé bydliště {}"]),
        (("zavináč", "tečka"), ("zavinac", "tecka")),
    ),
    "sv": Language(
        (["070-### ## ##", "08-### ### ##", "07########", "+46 70 ### ## ##"], ["073 ### ## ##", "031-## ## ##", "076-#######", "08 ### ## ##"]),
        (["Ring mig på {} ikväll", "Telefon: {}"], ["mitt mobilnummer är {}", "Jag nås på {}"]),
        (["{} är mitt", "Tack, {}"], ["Ja, {}.", "{}\nHälsningar"]),
        (["Storgatan %#, 114 ## Stockholm", "Björkvägen %B", "Kungsgatan %# lgh 1%0%", "Norra Vallgatan %#, 211 ## Malmö"], ["Drottninggatan %#, 411 ## Göteborg", "Ringvägen %##", "Lilla Torget %", "Ekstigen %#A, 752 ## Uppsala"]),
        (["Jag bor på {}.", "Skicka till {} tack"], ["Min adress är {}", "Vi flyttade till {} i maj."]),
        (("snabel-a", "punkt"), ("at", "punkt")),
    ),
    "da": Language(
        (["&# ## ## ##", "+45 &# ## ## ##", "&#######", "&### ####"], ["&# ## ## ##", "(+45) &#######", "&## ## ###", "+45 &### ####"]),
        (["Ring til mig på {} i aften", "Tlf.: {}"], ["mit mobilnummer er {}", "Du kan kontakte mig på {}"]),
        (["Telefon {} er min", "Mvh, tlf {}"], ["Ja, mobil {}.", "tlf. {}\nHilsen"]),
        (["Nørregade %#, 1165 København K", "Skovvej %, 2. tv.", "Vester Allé %#, 8000 Aarhus C", "Strandvejen %##"], ["Østergade %#, 5000 Odense C", "Kirkestræde %, st. th.", "Lindevænget %#", "Gammel Torv %, 9000 Aalborg"]),
        (["Jeg bor på {}.", "Send den til {} tak"], ["Min adresse er {}", "Vi er flyttet til {} i maj."]),
        (("snabel-a", "punktum"), ("at", "punktum")),
    ),
    "fi": Language(
        (["040 ### ####", "050-### ####", "09 ### ####", "+358 40 #######"], ["045 ### ## ##", "044-#######", "03 ### ####", "0400 ######"]),
        (["Soita minulle {} illalla", "puh. {}"], ["puhelinnumeroni on {}", "Tavoitat minut numerosta {}"]),
        (["{} on minun", "Kiitos, {}"], ["Joo, {}.", "{}\nTerveisin"]),
        (["Koivukatu % A %, 00100 Helsinki", "Rantatie %#", "Mannerheimintie %# B %#", "Puistokuja %, 33100 Tampere"], ["Kauppakatu %#, 20100 Turku", "Hämeenkatu % C %#", "Lehtopolku %", "Satamaraitti %#, 90100 Oulu"]),
        (["Asun osoitteessa {}.", "Lähetä se osoitteeseen {}"], ["Osoitteeni on {}", "Muutimme osoitteeseen {} toukokuussa."]),
        (("ät", "piste"), ("at", "piste")),
    ),
    "tr": Language(
        (["05## ### ## ##", "0 5## ### ## ##", "(05##) ### ## ##", "+90 5## ### ## ##"], ["0212 ### ## ##", "05## ### ####", "0(5##) ### ## ##", "05#########"]),
        (["Beni {} numarasından arayın", "Tel: {}"], ["cep telefonum {}", "Bana {} nolu telefondan ulaşabilirsiniz"]),
        (["{} benim", "Teşekkürler, {}"], ["Evet, {}.", "{}\nGörüşürüz"]),
        (["Bağdat Caddesi No: %#/%", "Lale Sok. No:%# Daire:%", "Cumhuriyet Mah. Atatürk Cad. No: %#, 34### Kadıköy/İstanbul", "Gül Sokak %#"], ["Fatih Mahallesi, Menekşe Sokağı No: % D: %", "İnönü Bulvarı No.%##, Çankaya/Ankara", "Yıldız Mah. 12%#. Sok. No:%", "Zafer Cd. No %#, 35### İzmir"]),
        (["Adresim {}.", "Kargoyu {} adresine gönderin"], ["Ev adresi: {}", "Yeni evimiz {} adresinde."]),
        (("et", "nokta"), ("at", "nokta")),
    ),
    "el": Language(
        (["69# ### ####", "210 ### ####", "69########", "+30 69# ### ####"], ["697 #######", "2310 ######", "694 ### ## ##", "21 0### ####"]),
        (["Πάρε με στο {} το βράδυ", "Τηλ.: {}"], ["το κινητό μου είναι {}", "Καλέστε στο {}"]),
        (["{} είναι το δικό μου", "Ευχαριστώ, {}"], ["Ναι, {}.", "{}\nΤα λέμε"]),
        (["Οδός Ερμού %#, 105 ## Αθήνα", "Λεωφόρος Κηφισίας %##", "οδός Αγίου Δημητρίου %#", "Πλατεία Συντάγματος %"], ["Λεωφ. Συγγρού %##, 117 ## Αθήνα", "οδ. Παπαναστασίου %#", "Οδός Τσιμισκή %#, Θεσσαλονίκη 546 ##", "Σολωμού %#, 106 ## Αθήνα"]),
        (["Μένω στην {}.", "Στείλτε το στη διεύθυνση {}"], ["Η διεύθυνσή μου: {}", "Μετακομίσαμε στην {} τον Μάιο."]),
        (("παπάκι", "τελεία"), ("παπακι", "τελεια")),
    ),
    "ru": Language(
        (["8 (9##) ###-##-##", "+7 9## ###-##-##", "8 9## ### ## ##", "89#########"], ["8-9##-###-##-##", "+79#########", "8 (495) ###-##-##", "9## ### ## ##"]),
        (["Позвони мне по {} вечером", "тел.: {}"], ["мой номер {}", "Мобильный {}, звоните"]),
        (["{} это мой", "Спасибо, {}"], ["Да, {}.", "{}\nДо встречи"]),
        (["ул. Ленина, д. %#, кв. %##", "г. Москва, ул. Тверская, д. %, стр. %", "проспект Мира, %#", "Невский пр-т, д. %#, 191### Санкт-Петербург"], ["улица Садовая, дом %, квартира %#", "пер. Цветной, %#, корп. %", "6200##, г. Екатеринбург, ул. Малышева, %#-%#", "Ленинградский проспект, %#, офис %##"]),
        (["Я живу по адресу {}.", "Доставьте на {}"], ["Мой адрес: {}", "Мы переехали на {} в мае."]),
        (("собака", "точка"), ("собачка", "точка")),
    ),
    "uk": Language(
        (["067 ### ## ##", "+38 (050) ###-##-##", "(044) ###-##-##", "063#######"], ["097-###-##-##", "+380 9# ### ## ##", "0 95 ### ## ##", "032 ### ## ##"]),
        (["Подзвони мені за номером {} ввечері", "тел. {}"], ["мій номер {}", "Мобільний: {}"]),
        (["{} це мій", "Дякую, {}"], ["Так, {}.", "{}\nДо зустрічі"]),
        (["вул. Хрещатик, %#, кв. %", "м. Львів, вул. Городоцька, буд. %##", "проспект Перемоги, %#", "пров. Тихий, %"], ["вулиця Франка, будинок %#, квартира %", "просп. Науки, %#, 611## Харків", "бульв. Шевченка, %, офіс %#", "0100#, м. Київ, вул. Грушевського, %/%"]),
        (["Я живу за адресою {}.", "Доставте на {}"], ["Моя адреса: {}", "Ми переїхали на {} у травні."]),
        (("собака", "крапка"), ("равлик", "крапка")),
    ),
    "he": Language(
        (["05%-#######", "05%-###-####", "03-#######", "05########"], ["05% ### ####", "+972-5%-#######", "02-### ####", "077-#######"]),
        (["תתקשר אליי ל-{} הערב", "טלפון: {}"], ["הנייד שלי {}", "אפשר להשיג אותי בטל' {}"]),
        (["{} זה שלי", "תודה, {}"], ["כן, {}.", "{}\nלהתראות"]),
        (["רחוב הרצל %#, תל אביב", "רח' ביאליק %, דירה %#", "שדרות רוטשילד %#", "דרך השלום %#, גבעתיים"], ["רחוב יפו %##, ירושלים", "שד' בן גוריון %, חיפה 31###", "סמטת הגפן %", "רח' אלנבי %#א, תל אביב"]),
        (["אני גר ב{}.", "לשלוח אל {}"], ["הכתובת שלי: {}", "עברנו ל{} במאי."]),
        (("שטרודל", "נקודה"), ("שטרודל", "נקודה")),
    ),
    "ar": Language(
        (["05########", "01% #### ####", "٠٥٥ ٤٣٢ ٨٧٦٥", "+966 5# ### ####"], ["٠١٠٢٣٤٥٦٧٨٩", "05# ### ####", "+20 10 #### ####", "07########"]),
        (["اتصل بي على {} مساء", "هاتف: {}"], ["رقم جوالي {}", "موبايل {} بعد العصر"]),
        (["رقمي {}", "شكرا، هاتفي {}"], ["نعم، جوال {}.", "ت: {}\nمع السلامة"]),
        (["شارع التحرير %#، القاهرة", "%# شارع الملك فهد، الرياض", "حي النزهة، شارع الأمير سلطان، مبنى %#", "شارع النيل رقم %، شقة %"], ["طريق الملك عبدالعزيز %##، جدة", "% شارع الحمراء، بيروت", "شارع السلام، فيلا %#، أبوظبي", "ص.ب. ####، دبي"]),
        (["أسكن في {}.", "أرسله إلى {} غدا"], ["عنواني: {}", "انتقلنا إلى {} في مايو."]),
        (("آت", "دوت"), ("ات", "نقطة")),
    ),
    "fa": Language(
        (["09## ### ####", "۰۹۱۲۳۴۵۶۷۸۹", "021-########", "+98 9## ### ####"], ["09#########", "۰۹۳۵ ۱۲۳ ۴۵ ۶۷", "۰۲۱ ۸۸۷۷ ۶۶۵۵", "0098 912 ### ####"]),
        (["به من زنگ بزن {} امشب", "تلفن: {}"], ["شماره موبایل من {} است", "همراه {}"]),
        (["{} مال من است", "ممنون، {}"], ["بله، {}.", "{}\nخداحافظ"]),
        (["خیابان ولیعصر، کوچه بهار، پلاک %#", "تهران، خیابان آزادی، پلاک ۱۲، واحد ۳", "بلوار کشاورز، پلاک %##", "خیابان حافظ، کوچه %، پلاک %#"], ["اصفهان، خیابان چهارباغ، پلاک %#", "خیابان شریعتی، کوچه یاس، پلاک ۴۵، طبقه ۲", "میدان ونک، خیابان ملاصدرا، پلاک %", "بلوار فردوسی، کوچه ۷، پلاک %#"]),
        (["من در {} زندگی می‌کنم.", "بفرستید به {}"], ["آدرس من: {}", "نشانی {} است."]),
        (("ات", "دات"), ("ات ساین", "دات")),
    ),
    "hi": Language(
        (["9#### #####", "+91 98### #####", "9#########", "९८७६५ ४३२१०"], ["8#### #####", "+91-7#########", "011-########", "०९८७६५४३२१०"]),
        (["मुझे {} पर कॉल करें", "फ़ोन: {}"], ["मेरा मोबाइल नंबर {} है", "संपर्क: {}"]),
        (["मेरा नंबर {}", "धन्यवाद, {}"], ["हाँ, {}।", "{}\nफिर मिलेंगे"]),
        (["मकान नंबर %#, गांधी मार्ग, जयपुर 3020##", "%#, नेहरू रोड, पुणे - 4110##", "फ्लैट %##, शांति नगर, भोपाल", "गली नंबर %, लाजपत नगर, नई दिल्ली 1100##"], ["घर नं. %#, तिलक मार्ग, लखनऊ 2260##", "%#/%, सरदार पटेल रोड, अहमदाबाद 3800##", "प्लॉट नंबर %#, सेक्टर %, नोएडा", "मकान संख्या %##, मोहल्ला काज़ी, आगरा"]),
        (["मैं {} में रहता हूँ।", "इसे {} पर भेजें"], ["मेरा पता: {}", "हम {} चले गए।"]),
        (("एट", "डॉट"), ("ऐट", "डॉट")),
    ),
    "th": Language(
        (["08#-###-####", "09# ### ####", "02-###-####", "๐๘๑-๒๓๔-๕๖๗๘"], ["06########", "08 #### ####", "053-######", "+66 8# ### ####"]),
        (["โทรหาฉันที่ {} ตอนเย็น", "โทร. {}"], ["เบอร์มือถือของผมคือ {}", "ติดต่อ{}ได้เลย"]),
        (["{} ของฉัน", "ขอบคุณ {}"], ["ใช่ {}", "{}\nแล้วเจอกัน"]),
        (["%##/% ถนนสุขุมวิท แขวงคลองเตย เขตคลองเตย กรุงเทพฯ 10110", "%# ซอยลาดพร้าว ## ถนนลาดพร้าว", "บ้านเลขที่ %# หมู่ % ตำบลแม่เหียะ อำเภอเมือง เชียงใหม่ 50100", "%#/%# ถ.พระราม 4 กรุงเทพฯ"], ["เลขที่ %# ซอยอารีย์ % ถนนพหลโยธิน เขตพญาไท กรุงเทพมหานคร 10400", "%##/## หมู่บ้านสวนสน ถนนรามคำแหง", "%# หมู่ที่ % ต.ราไวย์ อ.เมือง จ.ภูเก็ต 83130", "%## ถนนนิมมานเหมินท์ ต.สุเทพ"]),
        (["ฉันอยู่ที่ {}", "ส่งไปที่ {} นะ"], ["ที่อยู่: {}", "เราย้ายไป {} แล้ว"]),
        (("แอท", "ดอท"), ("แอต", "จุด")),
    ),
    "zh": Language(
        (["13%########", "186 #### ####", "010-6#######", "+86 139 #### ####"], ["15%########", "188-####-####", "0571-8#######", "02-2###-####"]),
        (["请打我的电话{}", "手机：{}"], ["我的手机号是{}，晚上联系", "联系方式 {}"]),
        (["{}是我的", "谢谢，{}"], ["对，{}。", "{}\n再见"]),
        (["北京市朝阳区建国路%#号", "上海市浦东新区世纪大道%##号%栋%0%室", "广州市天河区体育西路%#号", "中山路%##号"], ["浙江省杭州市西湖区文三路%##号%单元%0%", "成都市武侯区人民南路四段%#号", "台北市大安區信義路三段%#號%樓", "深圳市南山区科技园南区%#栋"]),
        (["我住在{}。", "请寄到{}"], ["我的地址：{}", "我们搬到了{}，欢迎来玩"]),
        (("艾特", "点"), ("艾特", "点")),
    ),
    "ja": Language(
        (["090-####-####", "03-####-####", "080########", "06-6###-####"], ["070-####-####", "045-###-####", "+81 90 #### ####", "０９０－１２３４－５６７８"]),
        (["{}に電話してください", "電話：{}"], ["携帯番号は{}です", "TEL {}"]),
        (["{}です", "ありがとう、{}"], ["はい、{}。", "{}\nでは"]),
        (["東京都新宿区西新宿%丁目%番%号", "大阪府大阪市北区梅田%-%#-%", "〒150-00## 東京都渋谷区神南%-%-%", "横浜市中区山下町%#番地"], ["京都府京都市左京区吉田本町%#-%", "北海道札幌市中央区大通西%丁目", "〒460-00## 愛知県名古屋市中区栄%-%#-% 栄ビル%0%号室", "福岡市博多区博多駅前%丁目%-%#"]),
        (["私は{}に住んでいます。", "{}に送ってください"], ["住所：{}", "{}に引っ越しました。"]),
        (("アット", "ドット"), ("アットマーク", "ドット")),
    ),
    "ko": Language(
        (["010-####-####", "02-###-####", "010########", "031-###-####"], ["010 #### ####", "+82 10-####-####", "070-####-####", "02-####-####"]),
        (["{}로 전화 주세요", "전화: {}"], ["제 휴대폰 번호는 {}입니다", "연락처 {}"]),
        (["{} 입니다", "감사합니다, {}"], ["네, {}.", "{}\n안녕히"]),
        (["서울특별시 강남구 테헤란로 %##", "부산광역시 해운대구 해운대로 %##, %0%호", "경기도 성남시 분당구 판교로 %##번길 %#", "서울시 마포구 서교동 %##-%"], ["대전광역시 유성구 대학로 %#", "인천광역시 연수구 송도동 %#-% %0%동 %0%%호", "서울 종로구 세종대로 %##", "제주특별자치도 제주시 연동길 %#"]),
        (["저는 {}에 살아요.", "{}로 보내 주세요"], ["주소: {}", "{}로 이사했습니다."]),
        (("골뱅이", "닷"), ("골뱅이", "점")),
    ),
    "vi": Language(
        (["09## ### ###", "0%## ### ####", "03########", "+84 9# ### ## ##"], ["08#.###.####", "024 3### ####", "07## ### ###", "(028) 3### ####"]),
        (["Gọi cho tôi số {} tối nay", "SĐT: {}"], ["số điện thoại của tôi là {}", "Liên hệ {}"]),
        (["Di động {} là của tôi", "Cảm ơn, {}"], ["Vâng, ĐT {}.", "{}\nHẹn gặp lại"]),
        (["Số %#, đường Lê Lợi, phường Bến Nghé, Quận 1", "%# Nguyễn Huệ, Phường %, Quận %, TP. Hồ Chí Minh", "%#/% đường Trần Hưng Đạo, Đà Nẵng", "số nhà %#, ngõ %#, phố Huế, Hà Nội"], ["%# đường Hai Bà Trưng, P. Tân Định, Q. 3", "Số % ngách %/%# phố Bạch Mai, Hà Nội", "%## Điện Biên Phủ, Phường %#, Quận Bình Thạnh", "Số nhà %#, đường Phan Chu Trinh, thành phố Huế"]),
        (["Tôi sống ở {}.", "Gửi đến {} nhé"], ["Địa chỉ: {}", "Chúng tôi chuyển đến {} rồi."]),
        (("a còng", "chấm"), ("a móc", "chấm")),
    ),
}  # fmt: skip

_LOCALS = (
    ["ada.quill", "bruno_vance", "mira77", "tor.lind"],
    ["jo-ellen.frost", "k.arden", "pavel2001", "sena.oakes"],
)
_HOSTS = (["quillpost.com", "mail.tarn.org", "brightfen.net"], ["inbox.loam.io", "ferrypost.de", "larkmail.co.uk"])  # fmt: skip
_HARD_BREAK = 3


def contact_texts(half: int, seed: int = 5) -> Iterator[Sample]:
    """Yield the texts of one half."""
    chance = random.Random(seed + half)  # noqa: S311 - made-up texts, no secret
    for code, language in LANGUAGES.items():
        yield from _emails(chance, half, code, language)
        kinds = (
            ("phone", language.phones, language.announced),
            ("phone bare", language.phones, language.bare),
            ("address", language.addresses, language.sentences),
        )
        for kind, shapes, texts in kinds:
            for shape in shapes[half]:
                for text in texts[half]:
                    yield _sample(text, fill(shape, chance), code, kind)


def fill(shape: str, chance: random.Random) -> str:
    """Return *shape* with digits in the places for them."""
    lowest = {"#": 0, "%": 1, "&": 2}
    keep_hash = "Calle" in shape  # Colombian addresses have a number sign
    return "".join(
        str(chance.randint(lowest[char], 9))
        if char in lowest
        and not (char == "#" and keep_hash and shape[index + 1 : index + 3] == " %")
        else char
        for index, char in enumerate(shape)
    )


def _emails(chance: random.Random, half: int, code: str, language: Language) -> Iterator[Sample]:
    at, dot = language.at_dot[half]
    for text in language.announced[half]:
        local, host = chance.choice(_LOCALS[half]), chance.choice(_HOSTS[half])
        spoken_host = host.replace(".", f" {dot} ")
        yield _sample(text, f"{local}@{host}", code, "e-mail")
        for written in (
            f"{local} {at} {spoken_host}",
            f"{local.replace('.', f' {dot} ')} {at} {spoken_host}",
            f"{local} ({at}) {host}",
            f"{local}[{at}]{host.replace('.', f'[{dot}]')}",
            f"{local}_at_{host}",
            f"{local}-at-{host.replace('.', '-dot-')}",
            f"{local} (a) {host}",
            " ".join(f"{local}@{host}"),
            f"{local}@\n{host}",
            f"{local}@{host[:_HARD_BREAK]}-\n{host[_HARD_BREAK:]}",
            f"{local}@\u200b{host}",
            f"{local}\uff20{host}",
        ):
            yield _sample(text, written, code, "e-mail disguised")


def _sample(text: str, value: str, code: str, kind: str) -> Sample:
    start = text.index("{}")
    return Sample(text.replace("{}", value), start, start + len(value), code, kind)
