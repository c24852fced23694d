"""Small English word lists that distinguish kinds of names. That a list lacks a name proves nothing."""

from __future__ import annotations

HONORIFICS_HE = frozenset("mr sir lord father uncle king prince duke count baron monsieur herr brother emperor".split())
HONORIFICS_SHE = frozenset(
    "mrs miss ms lady madam madame aunt queen princess duchess countess baroness mademoiselle sister empress".split()
)
HONORIFICS = (
    HONORIFICS_HE
    | HONORIFICS_SHE
    | frozenset(
        "dr doctor professor prof captain colonel major general inspector sergeant judge reverend saint".split()
    )
    | frozenset("constable detective lieutenant president senator governor bishop pope chief master admiral".split())
)
NAMES_HE = frozenset(
    """adam alan albert alexander alfred andrew anthony arthur benjamin bernard bob brian charles christopher daniel
    david dennis donald edgar edmund edward eric ernest francis frank fred frederick gary george gerald gilbert gordon
    gregory harold harry henry herbert howard hugh ian isaac jack jacob james jan jason jean jeff jeremy jim joe john
    jonathan jose joseph joshua juan karl keith kenneth kevin lawrence leonard leo lewis louis luke mark martin matthew
    maurice max michael mike mohammed nathan neil nicholas nigel oliver oscar owen patrick paul pedro peter philip
    ralph raymond richard robert roger ronald rupert samuel sebastian sidney simon stephen steven stuart thomas tim
    timothy tom victor vincent walter wilfred william winston""".split()
)
NAMES_SHE = frozenset(
    """abigail ada agatha agnes alice amanda amelia amy andrea angela ann anna anne annie barbara beatrice bella betty
    carol caroline catherine charlotte christine clara claire daisy deborah diana dora dorothy edith eleanor elizabeth
    ella ellen emily emma ethel eva evelyn fanny fiona florence frances grace hannah harriet helen henrietta ida irene
    isabel isabella jane janet jennifer jessica jill joan joyce julia julie karen kate katherine laura lauren lillian
    lily linda lisa louise lucy lydia mabel margaret maria marian marie martha mary matilda maud michelle mildred minnie
    molly nancy nora olivia pamela patricia penelope rachel rebecca rose rosemary ruth sally sandra sarah sharon sophia
    sophie stella susan sylvia teresa ursula vera victoria violet virginia winifred""".split()
)
# Last words of names of places.
PLACE_NOUNS = frozenset(
    """city county river lake island islands mountain mountains mount range valley bay sea ocean street road avenue lane
    square park bridge castle hall house court manor abbey village town province state states kingdom republic empire
    district region peninsula desert forest beach harbour harbor port airport station hills hill creek springs falls
    heights cottage farm""".split()
)
# Names of places, alone or as a last word. Some, such as "Washington", also end names of people; alone they are places.
PLACES = frozenset(
    """africa america asia europe australia england scotland wales ireland britain france germany spain portugal italy
    greece russia china japan india canada mexico brazil egypt turkey israel belgium netherlands austria switzerland
    sweden norway denmark finland poland hungary romania london paris berlin rome moscow vienna york california texas
    florida virginia pennsylvania massachusetts illinois ohio georgia michigan jersey carolina washington boston chicago
    hollywood north south east west""".split()
)
COUNTRIES = frozenset(
    """afghanistan albania algeria angola argentina armenia australia austria azerbaijan bahrain bangladesh belarus
    belgium benin bhutan bolivia bosnia botswana brazil bulgaria burma cambodia cameroon canada chad chile china
    colombia congo croatia cuba cyprus czechoslovakia denmark ecuador egypt england eritrea estonia ethiopia
    fiji finland france gabon gambia georgia germany ghana greece guatemala guinea guyana haiti honduras hungary
    iceland india indonesia iran iraq ireland israel italy jamaica japan jordan kazakhstan kenya korea kuwait
    laos latvia lebanon lesotho liberia libya lithuania luxembourg macedonia madagascar malawi malaysia mali
    malta mauritania mauritius mexico moldova mongolia montenegro morocco mozambique namibia nepal netherlands
    nicaragua niger nigeria norway oman pakistan palestine panama paraguay peru philippines poland portugal
    qatar romania russia rwanda scotland senegal serbia singapore slovakia slovenia somalia spain sudan suriname
    swaziland sweden switzerland syria taiwan tajikistan tanzania thailand togo tunisia turkey turkmenistan
    uganda ukraine uruguay uzbekistan venezuela vietnam wales yemen yugoslavia zambia zimbabwe""".split()
) | frozenset(
    "united states, united kingdom, great britain, soviet union, south africa, new zealand, sri lanka, "
    "saudi arabia, costa rica, el salvador, sierra leone, ivory coast, north korea, south korea, "
    "dominican republic, czech republic, papua new guinea, burkina faso, american samoa, puerto rico".split(", ")
)
STATES = frozenset(
    """alabama alaska arizona arkansas california colorado connecticut delaware florida georgia hawaii idaho illinois
    indiana iowa kansas kentucky louisiana maine maryland massachusetts michigan minnesota mississippi missouri montana
    nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont virginia washington wisconsin wyoming
    queensland victoria tasmania bavaria saxony hesse""".split()
) | frozenset(
    "new hampshire, new jersey, new mexico, new york, north carolina, north dakota, rhode island, south carolina, "
    "south dakota, west virginia, new south wales, south australia, western australia".split(", ")
)
ORGANISATIONS = frozenset(
    """university college school institute academy company corporation inc ltd group party association society league
    club team army navy committee council commission department ministry bank church orchestra band records press
    studios agency service union foundation museum library hospital trust times news network federation parliament
    congress senate court authority board office police bureau airlines""".split()
)
SAYING = frozenset(
    "said says asked replied cried answered thought wrote whispered told exclaimed added murmured".split()
)
ACTING = frozenset(
    """came went gave took made saw got began became kept left found knew met ran set put let sat stood held brought
    read lost won fell felt led sent paid drew drove slept wrote spoke told bought sold built broke""".split()
)
BEING = frozenset("is was are were has had will would can could did does became may might must should".split())
MONTH = (
    "(?:January|February|March|April|May|June|July|August|September|October|November|December"
    "|Jan\\.|Feb\\.|Mar\\.|Apr\\.|Jun\\.|Jul\\.|Aug\\.|Sept?\\.|Oct\\.|Nov\\.|Dec\\.)"
)
WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
NUMBER_WORD = (
    "(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen"
    "|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion|dozen)"
)
# Capitalised words that open sentences and lines but are not names.
NO_NAMES = frozenset(
    """chapter part book section volume contents preface prologue epilogue figure table page note notes see suddenly
    perhaps meanwhile finally eventually later afterwards nevertheless furthermore moreover according like unlike
    despite given good dear oh ah alas yes no well come look listen thank thanks sorry please hello god heaven heavens
    why how next two three four five six seven eight nine ten first second third last following long old new little
    great young poor today tomorrow yesterday tonight night morning evening day people men women nobody everybody
    somebody english french german american british italian spanish russian latin greek roman sir madam ma'am gentlemen
    ladies mr mrs ms dr originally currently formerly historically additionally consequently unfortunately fortunately
    obviously certainly certainly indeed stop wait let's don't can't didn't it's that's there's i'm i'll i've i'd
    he's she's we're we'll you're they're what's who's isn't wasn't won't o'clock let""".split()
)
