"""Only what is known to be public is public, and a number has one spelling."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripstop.kernel.errors import UsageError
from ripstop.security.addresses import is_public, looks_like_a_number, meant_by_number
from ripstop.security.endpoints import parse_endpoint, redirected, secret_names
from tests.tools.http.private_spellings import PRIVATE_4, PRIVATE_6

PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "93.184.215.14", "172.15.255.255", "172.32.0.1", "100.63.255.255", "100.128.0.1"),
    *("192.167.255.255", "223.255.255.255", "2606:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888"),
)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address", [*PRIVATE_4, *PRIVATE_6, "fe80::1%lo", "2606:4700::1111%1", "localhost", "", "1.1.1"]
)
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.integers(0, 2**32 - 1))
def test_what_python_calls_private_is_not_public(number: int) -> None:
    address = ipaddress.IPv4Address(number)
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert not is_public(str(address))


@given(st.ip_addresses(v=6))
def test_what_python_calls_private_is_not_public_in_ipv6(address: ipaddress.IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.ipv4_mapped or address.sixtofour or address.teredo:
        assert not is_public(str(address))


@given(st.ip_addresses(v=4))
def test_no_address_that_carries_an_ipv4_address_is_public(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    for prefix in ("::ffff:0:0", "::", "64:ff9b::", "::ffff:0:0:0", "2001::"):
        assert not is_public(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number)))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))))


NUMBERS = ["0", "1", "127", "255", "256", "010", "0x7f", "0X1", "08", "0x", "4294967295", "99999"]
PARTS = st.lists(st.sampled_from(NUMBERS), min_size=1, max_size=5)


@given(PARTS, st.booleans())
def test_a_number_is_read_as_the_c_library_reads_it(parts: list[str], dot: bool) -> None:
    host = ".".join(parts)
    try:
        expected = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        expected = ""
    assert looks_like_a_number(host)
    if "0x" not in parts:  # which C libraries read differently
        assert meant_by_number(host + "." * dot) == expected


@given(st.text())
def test_any_text_is_a_url_or_a_usage_error(text: str) -> None:
    for url in (text, f"http://{text}", f"http://a.example/{text}"):
        try:
            found = parse_endpoint(url)
        except UsageError:
            continue
        assert found.url.isascii() and found.url.isprintable() and " " not in found.url
        assert found.host and "@" not in found.authority
        if looks_like_a_number(found.host):
            assert str(ipaddress.ip_address(found.host)) == found.host


@given(st.text())
def test_any_location_is_a_url_or_a_usage_error(text: str) -> None:
    here = parse_endpoint("https://a.example/b/c?d")
    for location in (text, f"//{text}", f"/{text}"):
        try:
            found = redirected(here, location)
        except UsageError:
            continue
        assert found.scheme in ("http", "https")
        assert found.origin == here.origin or location.startswith(("http", "//", "HTTP", " ", "\\")) or "//" in location


@pytest.mark.parametrize(
    ("url", "origin", "target"),
    [
        ("https://API.Example:443/A?b=[1]&c=%20", "https://api.example", "/A?b=[1]&c=%20"),
        ("http://a.example?x", "http://a.example", "/?x"),
        ("http://[::1]:8080", "http://[::1]:8080", "/"),
        ("http://127.0.0.1:8080/x/../y", "http://127.0.0.1:8080", "/x/../y"),
        ("http://xn--fiq228c.example/", "http://xn--fiq228c.example", "/"),
    ],
)
def test_urls_are_taken_apart(url: str, origin: str, target: str) -> None:
    found = parse_endpoint(url)
    assert (found.origin, found.target) == (origin, target)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://0x7f.1/", "some programs read as 127.0.0.1; write that"),
        ("http://1.2.3.4.5/", "not an IP address"),
        ("http://a:b@c.example/", "user name or password"),
        ("http://a.example/#x", "fragment"),
        ("http://a.example/ b", "Percent-encode"),
        ("a.example/x", "http://"),
        ("https://a.example/" + "x" * 8_000, "at most 8000"),
    ],
)
def test_what_is_wrong_with_a_url_is_said(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_endpoint(url)


def test_secrets_are_named_in_headers() -> None:
    headers = {"A": "Bearer ${SHOP_KEY}", "B": "${ID}:${SHOP_KEY}", "C": "{x} $Y ${} ${1}"}
    assert secret_names(headers) == ("ID", "SHOP_KEY")
