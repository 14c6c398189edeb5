"""Rules from subjects to names: the examples of Kafka's own tests and documents."""

import pytest

from headrace.errors import InvalidConfig
from headrace.security.principal_mapping import NoMatchingRule, PrincipalMapping

SUBJECT = "CN=Duke,OU=ServiceUsers,O=Org,C=US"
RULES = ",".join(
    (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    )
)


@pytest.mark.parametrize(
    ("rules", "subject", "name"),
    [
        (RULES, SUBJECT, "duke"),
        (RULES, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (RULES, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (RULES, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (RULES, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        ("DEFAULT", SUBJECT, SUBJECT),
        ("", SUBJECT, None),
        ("RULE:^CN=(.*?),.*$/$1/", "OU=x", None),
        ("RULE:^CN=(.*?),(.*)$/$1@$4/", SUBJECT, "Duke@$4"),
        ("RULE:^CN=(.*?),(.*)$/$12/", SUBJECT, "Duke2"),
        (r"RULE:^CN=(.*?),(.*)$/\$1 \\/", SUBJECT, "$1 \\"),
        ("RULE:^CN=(.*?),.*$/$0/L", "CN=A,B", "cn=a,b"),
        ("  RULE:^CN=(.*?),.*$/$1/L ,  DEFAULT ", SUBJECT, "duke"),
    ],
)
def test_the_first_rule_that_matches_names_the_principal(
    rules: str, subject: str, name: str | None
) -> None:
    """SEC-3."""
    mapping = PrincipalMapping(rules)
    if name is None:
        with pytest.raises(NoMatchingRule):
            mapping.name_of(subject)
    else:
        assert mapping.name_of(subject) == name


@pytest.mark.parametrize(
    "rules",
    ["RULE", "default", "RULE:^CN=(.*?)/$1/LU", "RULE:((/$1/", "RULE:^CN=(.*?),.*$/$1", "foo"],
)
def test_a_malformed_rule_is_refused(rules: str) -> None:
    """SEC-3."""
    with pytest.raises(InvalidConfig):
        PrincipalMapping(rules)
