"""Words that keep their full stop, in English, Spanish, German and French."""

from __future__ import annotations

# before a name: a sentence never ends there
TITLES = frozenset(
    """
    Mr Mrs Ms Messrs Dr Drs Prof Rev Fr Hon Pres Gov Lt Col Gen Capt Cmdr Adm Maj Sgt Cpl Sen Sens Rep Reps St Ste Mt Ft
    Sr Sra Sres Srta Dña Dra Gral Avda Ud Uds Hr Frl Dipl Ing Mag Mme Mlle Mgr Mgrs MM vs ca bzw ggf vgl evtl approx
    núm pág av
    """.split()  # noqa: SIM905 - a table is easier to read than a list
)
# after a name, or anywhere: a sentence may end there, and then the full stop is its own token
WORDS = frozenset(
    """
    Inc INC Corp CORP Co Cos Ltd LTD Bros Jr Sr Bhd Bancorp Cie Cía Esq Dept Univ Assn Ave Blvd Rd Ariz Calif Colo Conn
    Fla Ky Mich Minn Nev Okla Tenn Wis Aug Sept Oct Nov Dec Feb etc al ft Mio Mrd usw Str
    """.split()  # noqa: SIM905
)
# only before a number
BEFORE_NUMBERS = frozenset(
    """
    No Nos no nos Nr Art art Arts Vol vol Fig fig Figs Sec Abs Kap Ch ch pp Jan Mar Apr Jun Jul Sep Abr Ago Dic tel Tel
    """.split()  # noqa: SIM905
)
# states of the United States, only after a comma: Springfield, Ill.
STATES = frozenset("Ala Ark Del Ga Ill Ind Kan La Mass Md Me Miss Mo Mont Neb Ore Pa Tex Va Vt Wash".split())  # noqa: SIM905

# Words that often begin a sentence: "in the U.S. The …" has two sentences, "the U.S. Senate" is in one.
STARTERS = frozenset(
    """
    A After All Also Although An And As At Before But By Despite Each Even Few For From He Her Here His How However I If
    In It Its Just Last Many Meanwhile Most Moreover Mr Mrs Ms My No Not Now Of On One Only Other Others Our Right
    Several She Since So Some Still Such That The Their Then There These They This Those Thus Today Two Under Until We
    What When Where While Who Why With Without Yesterday Yet You Your
    Al Así Aunque Como Con Cuando De Desde Después El Ella Ellos En Entre Es Esta Este Esto Hay La Las Le Lo Los Más Mi
    Ni Para Pero Por Se Según Sin Sobre Su Sus También Tras Un Una Y Ya
    Aber Am Auch Auf Bei Beim Das Dem Den Der Die Dies Diese Dieser Doch Ein Eine Er Es Für Ich Ihr Im Ist Mit Nach Nun
    Sie Seit Sein Und Von Vor Was Wenn Wie Wir Zu Zum
    Après Au Avec Ce Ces Cet Cette Dans Depuis Des Du Elle Elles Et Il Ils Je Les Leur Mais Nous On Ou Par Pour Quand
    Sa Ses Son Une Vous
    """.split()  # noqa: SIM905
)
# German words after the full stop of an ordinal number: am 3. Mai
AFTER_ORDINALS = frozenset(
    """
    Januar Jänner Februar März April Mai Juni Juli August September Oktober November Dezember Jahrhundert
    Jahrhunderts Jahrhunderten
    """.split()  # noqa: SIM905
)
