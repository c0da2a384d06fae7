"""
Credentials that are known by their own shape: a fixed prefix and a body.

The formats are public facts of the issuers. Each pattern serves two engines:
Hyperscan finds where a shape of minimal length starts, RE2 measures it there.
The scanner library knows many more; what stands here must also be found where
the library does not look (glued to words, escaped, coloured, wrapped).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Format:
    """
    One credential format.

    Attributes:
        kind: The label.
        head: Pattern of everything but the open-ended tail.
        tail: Character class of the tail, or empty.
        low: Least length of the tail.
        high: Greatest length of the tail that is still taken.
        alone: The character before must not be a letter or a digit.
        digit: At least one digit must stand in it (`ASIAANDPACIFICREGION`).
    """

    kind: str
    head: str
    tail: str = ""
    low: int = 0
    high: int = 0
    alone: bool = True
    digit: bool = False

    @property
    def seed(self) -> str:
        """The shortest match, for the prefilter."""
        return self.head + (f"{self.tail}{{{self.low}}}" if self.tail else "")

    @property
    def whole(self) -> str:
        """The match with its whole tail, however long: the caller compares with `high`."""
        return f"({self.head})" + (f"({self.tail}{{{self.low},}})" if self.tail else "()")


_WORD = "[A-Za-z0-9]"
_OPEN = "[A-Za-z0-9_-]"
_DOT = "[A-Za-z0-9_.-]"
_B64 = "[A-Za-z0-9+/=]"
_HEX = "[0-9a-f]"
_SAFE = False  # a prefix so distinct that it may stand glued to a word

FORMATS: Final[tuple[Format, ...]] = (
    Format("github-token", "gh[pousr]_", "[A-Za-z0-9_]", 34, 255, _SAFE),
    Format("github-token", "ghs_[0-9]{4,12}_", _DOT, 34, 900, _SAFE),
    Format("github-token", "github_pat_", "[A-Za-z0-9_]", 22, 255, _SAFE),
    Format("gitlab-token", "gl(?:pat|rt|dt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-", _DOT, 18, 300),
    Format("gitlab-token", "GR1348941", _OPEN, 18, 40),
    Format("slack-token", "xox[abeoprs]-", "[A-Za-z0-9-]", 12, 250, _SAFE),
    Format("slack-token", "xoxe\\.xox[bp]-[0-9]-", _WORD, 100, 250),
    Format("slack-token", "xapp-[0-9]-", "[A-Za-z0-9-]", 24, 200),
    Format(
        "webhook", "https://hooks\\.slack\\.com/(?:services|workflows|triggers)/", "[\\w/]", 30, 120
    ),
    Format(
        "webhook",
        "https://(?:[a-z]{2,8}\\.)?discord(?:app)?\\.com/api/(?:v[0-9]{1,2}/)?webhooks/[0-9]{15,22}/",
        _OPEN,
        40,
        100,
    ),
    Format("webhook", "https://[a-z0-9-]{1,60}\\.webhook\\.office\\.com/", "[\\w/@.-]", 60, 300),
    Format("stripe-key", "[sr]k_(?:live|test|prod)_", _WORD, 10, 250, _SAFE),
    Format("stripe-key", "whsec_", _B64, 24, 100),
    Format("anthropic-key", "sk-ant-[a-z0-9]{2,12}-", _OPEN, 20, 300, _SAFE),
    Format("openai-key", "sk-(?:proj|svcacct|admin|None|service)-", _OPEN, 20, 300, _SAFE),
    Format("openai-key", "sk-[A-Za-z0-9]{18,24}T3BlbkFJ", _WORD, 18, 60, _SAFE),
    Format("ai-key", "sk-(?:or|lf|kimi|cp)-(?:v[0-9]-)?", "[A-Za-z0-9-]", 24, 100, digit=True),
    Format("ai-key", "sk-", _WORD, 32, 80, digit=True),
    Format("ai-key", "sk-", _OPEN, 44, 250, digit=True),
    Format("google-key", "AIza", _OPEN, 35, 39, _SAFE),
    Format("google-key", "GOCSPX-", _OPEN, 20, 60, _SAFE),
    Format("google-key", "ya29\\.", _OPEN, 30, 1000),
    Format("google-key", "1//0[0-9a-zA-Z]", _OPEN, 30, 200),
    Format("aws-key", "A(?:KIA|SIA|BIA|CCA|ROA|IDA)[A-Z0-9]{16}", digit=True),
    Format("aws-key", "IQoJb3JpZ2luX2Vj", _B64, 80, 4000, _SAFE),
    Format("aws-key", "ABSK", _B64, 100, 300),
    Format("aws-key", "amzn\\.mws\\.[0-9a-z]{8}-(?:[0-9a-z]{4}-){3}[0-9a-z]{12}"),
    Format("azure-key", "[A-Za-z0-9_~.]{3}[0-9]Q~", "[A-Za-z0-9_~.-]", 31, 34),
    Format("ai-key", "hf_", _WORD, 34, 40),
    Format("ai-key", "gsk_", _WORD, 44, 60),
    Format("ai-key", "xai-", _WORD, 60, 100),
    Format("ai-key", "pplx-", _WORD, 40, 64),
    Format("ai-key", "r8_", _WORD, 36, 40),
    Format("ai-key", "jina_", _WORD, 50, 70),
    Format("ai-key", "llx-", _OPEN, 40, 60),
    Format("ai-key", "fw_", _WORD, 22, 30, digit=True),
    Format("package-token", "npm_", _WORD, 36, 40),
    Format("package-token", "pypi-", _OPEN, 50, 500),
    Format("package-token", "rubygems_", _HEX, 40, 64),
    Format("package-token", "CLOJARS_", _WORD, 56, 64),
    Format("package-token", "oy2[a-z0-9]{43}", digit=True),
    Format("package-token", "cio[A-Za-z0-9]{32}", digit=True),
    Format("package-token", "dckr_[po]at_", _OPEN, 20, 60),
    Format("package-token", "AKCp[A-Za-z0-9]", _WORD, 60, 100),
    Format("package-token", "cmVmdGtu", _B64, 48, 80),
    Format("mail-key", "SG\\.[A-Za-z0-9_-]{14,32}\\.", _OPEN, 14, 64),
    Format("mail-key", "key-[0-9a-f]{32}"),
    Format("mail-key", "[0-9a-f]{32}-us[0-9]{1,2}"),
    Format("mail-key", "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    Format("mail-key", "xkeysib-[0-9a-f]{64}-", _WORD, 16, 20),
    Format("mail-key", "SK[0-9a-f]{32}"),
    Format("telegram-token", "[0-9]{8,10}:[A-Za-z0-9_-]{35}"),
    Format("discord-token", "[MNOZ][A-Za-z0-9_-]{23,27}\\.[A-Za-z0-9_-]{6}\\.", _OPEN, 27, 45),
    Format("vault-token", "hv[sbr]\\.", _OPEN, 24, 300),
    Format("vault-token", "[A-Za-z0-9]{14}\\.atlasv1\\.", _OPEN, 55, 80),
    Format("database-token", "dapi[0-9a-f]{32}(?:-[0-9])?"),
    Format("database-token", "pscale_(?:pw|tkn|oauth)_", _DOT, 32, 64),
    Format("database-token", "sbp_(?:v[0-9]_)?", _HEX, 40, 64),
    Format("database-token", "mdb_sa_sk_", _OPEN, 36, 60),
    Format("database-token", "sb_secret_", _OPEN, 20, 60),
    Format("cloud-token", "do[opr]_v1_", _HEX, 60, 64),
    Format("cloud-token", "fo1_", _OPEN, 38, 50),
    Format("cloud-token", "fm[12][ar]?_", _B64, 80, 900),
    Format("cloud-token", "cf(?:at|ut|k)_", _WORD, 38, 60),
    Format("cloud-token", "v1\\.0-[0-9a-f]{24}-[0-9a-f]{140,150}"),
    Format("cloud-token", "HRKU-", _OPEN, 30, 80),
    Format("cloud-token", "nfp_", _WORD, 34, 40),
    Format("cloud-token", "vc[pik]_", _WORD, 24, 60, digit=True),
    Format("cloud-token", "rnd_", _WORD, 28, 40, digit=True),
    Format("cloud-token", "pul-", _HEX, 40, 40),
    Format("cloud-token", "LTAI", _WORD, 12, 26, digit=True),
    Format("cloud-token", "AKID", _WORD, 28, 40, digit=True),
    Format("cloud-token", "tskey-[a-z]{3,9}-", _OPEN, 20, 90),
    Format("cloud-token", "dp\\.(?:pt|st|ct|sa|scim|audit)\\.", _DOT, 36, 80),
    Format("cloud-token", "ops_eyJ", _B64, 80, 1500),
    Format("ci-token", "sq[uap]_", _HEX, 38, 40),
    Format("ci-token", "bkua_", _HEX, 40, 40),
    Format("ci-token", "CCI(?:PAT|PRJ)_", "[A-Za-z0-9_]", 40, 90),
    Format("monitoring-key", "NR(?:AK|AA|JS|RA|II)-", _WORD, 16, 40),
    Format("monitoring-key", "glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"),
    Format("monitoring-key", "glc_eyJ", _B64, 50, 400),
    Format("monitoring-key", "sntr[yu]s?_", _B64 + "", 40, 250),
    Format("monitoring-key", "dt0[a-z][0-9]{2}\\.[A-Z0-9]{24}\\.", "[A-Z0-9]", 60, 64),
    Format("productivity-token", "PM(?:AK|AT)-", "[A-Za-z0-9-]", 24, 70),
    Format("productivity-token", "lin_(?:api|oauth)_", _WORD, 32, 64),
    Format("productivity-token", "ntn_", _WORD, 40, 50),
    Format("productivity-token", "secret_[A-Za-z0-9]{43}"),
    Format("productivity-token", "fig[dour]{1,2}_", _OPEN, 38, 50),
    Format("productivity-token", "pat[A-Za-z0-9]{14}\\.", _HEX, 60, 64),
    Format("productivity-token", "AT[AC]TT3[A-Za-z0-9]", "[A-Za-z0-9_=-]", 100, 250, _SAFE),
    Format("productivity-token", "[0-9]/[0-9]{14,18}(?:/[0-9]{14,18})?:[0-9a-f]{32}"),
    Format("productivity-token", "sl\\.[A-Za-z0-9_-]{4}", _OPEN, 100, 1300),
    Format("payment-key", "shp(?:at|ca|pa|ss)_", _WORD, 30, 60),
    Format("payment-key", "sq0(?:atp|csp|idp)-", _OPEN, 22, 50),
    Format("payment-key", "EAAA[A-Za-z0-9_-]{60}"),
    Format("payment-key", "EZ[AT]K[A-Za-z0-9]{54}"),
    Format("token", "EAA[A-Z][A-Za-z0-9]", _WORD, 80, 300, digit=True),
    Format("encryption-key", "AGE-SECRET-KEY-1", "[A-Z0-9]", 50, 70),
    Format("encryption-key", "S[UOANCX][A-Z2-7]{56}", digit=True),
    Format("encryption-key", "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,6}-){4}[A-Z0-9]{5}"),
    Format("otp-seed", "otpauth://[a-z]{4}/", "[!#-&(-;=?-Z_a-z~]", 20, 600, _SAFE),
    Format("jwt", "eyJ[A-Za-z0-9_-]{14,}\\.", "[A-Za-z0-9_.-]", 20, 8000, _SAFE),
    Format(
        "jwt",
        "eyJ[A-Za-z0-9_-]{16,}\\.[A-Za-z0-9_-]*\\.[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]{8,}\\.",
        _OPEN,
        12,
        60,
    ),
    Format(
        "password-hash",
        "\\$[156]\\$(?:rounds=[0-9]{3,9}\\$)?[A-Za-z0-9./]{1,16}\\$",
        "[A-Za-z0-9./]",
        20,
        90,
        _SAFE,
    ),
    Format("password-hash", "\\$apr1\\$[A-Za-z0-9./]{1,8}\\$", "[A-Za-z0-9./]", 20, 24, _SAFE),
    Format("password-hash", "\\$2[abxy]?\\$[0-9]{2}\\$", "[A-Za-z0-9./]", 53, 53, _SAFE),
    Format(
        "password-hash",
        "\\$(?:y|gy|7)\\$[A-Za-z0-9./]{2,}\\$[A-Za-z0-9./]+\\$",
        "[A-Za-z0-9./]",
        40,
        90,
        _SAFE,
    ),
    Format(
        "password-hash",
        "\\$argon2(?:id|i|d)\\$v=[0-9]{1,3}\\$m=[0-9]{1,9},t=[0-9]{1,9},p=[0-9]{1,6}\\$[A-Za-z0-9+/]{8,90}\\$",
        "[A-Za-z0-9+/]",
        16,
        130,
        _SAFE,
    ),
    Format(
        "password-hash",
        "pbkdf2_sha(?:1|256|512)\\$[0-9]{3,9}\\$[A-Za-z0-9./=+]{4,64}\\$",
        _B64,
        24,
        130,
        _SAFE,
    ),
    Format("password-hash", "\\{S?SHA(?:256|512)?\\}", _B64, 28, 130, _SAFE),
)
"""All formats; the position is the rule number."""
