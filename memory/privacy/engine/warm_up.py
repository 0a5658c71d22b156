"""
Texts that a redactor searches while it is prepared: each needs lists that the others do not.

All that looks like somebody's is made up.
"""

# ruff: noqa: RUF001 - letters of other languages are meant

TEXTS = (
    (
        "Dear Ms Ada Lovelace, my name is Ada: did Bob say Maria and Tom live at 12 High "
        'Street, London? {"name": "Ada"}'
    ),
    (
        "Mail ada@example.com or @ada_l, username: ada_l, call +44 20 7946 0018, (212) "
        "555-0187 or 0171 3456789."
    ),
    (
        "IBAN GB82 WEST 1234 5698 7654 32, card 4556 7375 8689 9855, SSN 536-90-4399, "
        "passport 123456789, plate B-AB 123."
    ),
    (
        "password: hunter2x9, api_key=sk-proj-abcdef1234567890ABCDEF, my pin is 4711, "
        "token ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    ),
    (
        "https://ada:pw1234@example.com/x 192.168.4.17 2001:db8::8a2e:370:7334 "
        "00:1b:44:11:3a:b7 0x52908400098527886E0F7030069857D2E4169EE7"
    ),
    (
        "YWRhQGV4YW1wbGUuY29tIGFuZCBib2JAZXhhbXBsZS5jb20gYW5k ada at example dot com "
        "abandon ability able about above absent absorb"
    ),
    ("ada lovelace: hi, i met anna and jan yesterday"),
    (
        "Ich heiße Jürgen Müller und wohne in der Hauptstraße 5, 10115 Berlin. Mein "
        "Passwort ist geheim1."
    ),
    ("Me llamo Íñigo García y vivo en la calle Mayor 12, 28013 Madrid. Mi contraseña es secreto1."),
    (
        "Je m'appelle Zoé Dubois, 3 rue de la Paix, 75002 Paris. Mi chiamo Giulia Rossi, "
        "via Roma 1, 00184 Roma."
    ),
    (
        "Meu nome é João da Silva, rua Augusta 100, São Paulo. Ik heet Jan de Vries, "
        "Kerkstraat 1, 1012 AB Amsterdam."
    ),
    (
        "Nazywam się Łukasz Kowalski, ul. Długa 5, 00-001 Warszawa. Jag heter Åsa Öberg. "
        "Ayşe'nin evi İstanbul'da."
    ),
    ("Chào anh Nguyễn Văn An, đường Lê Lợi 5, Hà Nội."),
    ("Меня зовут Анна Иванова, ул. Ленина 5, Москва. Мій пароль таємний1."),
    ("Με λένε Γιώργος Παπαδόπουλος, Αθήνα."),
    ("שלום, שמי דוד כהן ואני גר בתל אביב."),
    ("اسمي محمد العلي وأسكن في القاهرة."),
    ("मेरा नाम अंजलि शर्मा है और मैं दिल्ली में रहती हूँ।"),
    ("สวัสดี ผมชื่อสมชาย ใจดี"),
    ("안녕하세요 김철수입니다."),
    ("我叫王小明，住在北京市朝阳区。"),
    ("田中さん、私は佐藤花子です。東京都千代田区。"),
)
