"""Ways to write a private address in a URL: numbers, IPv6, look-alikes, tricks with the parts of a URL, and names."""

from collections.abc import Iterator
from itertools import product

PRIVATE_4 = (
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.1.2.3",
    "127.255.255.255", "168.63.129.16", "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1",
    "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255",
    "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
)  # fmt: skip
PRIVATE_6 = (
    "::", "::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::0001", "0::1",
    "::ffff:127.0.0.1", "::ffff:7f00:1", "0:0:0:0:0:ffff:7f00:1", "::FFFF:10.0.0.1", "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1", "::ffff:0:7f00:1", "::127.0.0.1", "::7f00:1", "::a9fe:a9fe",
    "64:ff9b::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "64:ff9b::8.8.8.8",
    "2002:7f00:1::", "2002:7f00:1::1", "2002:a9fe:a9fe::", "2002:808:808::", "2001::1", "2001:0:7f00:1::",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:20::1", "2001:db8::1", "3fff::1", "fe80::1", "fe80::5efe:127.0.0.1",
    "fe9f::1", "febf::1", "fec0::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "ff0e::1",
    "100::1", "100:0:0:1::1", "5f00::1", "4000::1", "2600:1f00:0:0:0:5efe:7f00:1", "2600:1f00:0:0:200:5efe:a00:1",
)  # fmt: skip
NAMES = (
    "localhost", "LOCALHOST", "localhost.localdomain", "ip6-localhost", "metadata.google.internal", "metadata",
    "instance-data", "instance-data.ec2.internal", "169.254.169.254.nip.io", "127.0.0.1.nip.io", "localtest.me",
    "app.localhost", "kubernetes.default.svc", "host.docker.internal", "router.lan", "xn--lcalhost-5kb",
)  # fmt: skip
DIGITS = {
    "full width": "０１２３４５６７８９",
    "circled": "⓪①②③④⑤⑥⑦⑧⑨",
    "arabic": "٠١٢٣٤٥٦٧٨٩",
    "devanagari": "०१२३४५६७८९",
    "bold": "𝟎𝟏𝟐𝟑𝟒𝟓𝟔𝟕𝟖𝟗",
}
DOTS = "。．｡․"


def numbers(parts: tuple[int, ...]) -> Iterator[str]:
    """An address in all mixtures of decimal, octal and hex, whole and with its last parts put together."""
    a, b, c, d = parts
    for split in ((a, b, c, d), (a, b, c << 8 | d), (a, b << 16 | c << 8 | d), (a << 24 | b << 16 | c << 8 | d,)):
        for forms in product(("{}", "0{:o}", "0x{:x}"), repeat=len(split)):
            spelled = ".".join(form.format(one) for form, one in zip(forms, split, strict=True))
            if spelled != f"{a}.{b}.{c}.{d}":
                yield spelled
    yield from (f"{a:03}.{b:03}.{c:03}.{d:03}", f"0X{a:02X}{b:02X}{c:02X}{d:02X}", f"{a}.{b}.{c}.{d}.")
    yield from (f"0x{a:08x}.{b}.{c}.{d}", f"{a}.{b}.{c}.0{d:o}", f"0{a:012o}.{b}.{c}.{d}")


def look_alikes() -> Iterator[str]:
    for digits in DIGITS.values():
        for address in ("127.0.0.1", "169.254.169.254"):
            yield address.translate({ord(str(n)): digits[n] for n in range(10)})
    for dot in DOTS:
        yield from (f"127{dot}0{dot}0{dot}1", f"127.0{dot}0.1", f"localhost{dot}")
    yield from ("ⓛⓞⓒⓐⓛⓗⓞⓢⓣ", "ｌｏｃａｌｈｏｓｔ", "loc\u00adalhost", "127.0.0.\u200b1", "127.0.0.1\u3002", "ⅼocalhost")


def tricks(port: int) -> Iterator[str]:
    """URLs that parsers read differently."""
    private, public = f"127.0.0.1:{port}", "public.example"
    yield from (f"http://{public}@{private}/", f"http://{public}:80@{private}/", f"http://a:b@{private}/")
    yield from (f"http://{private}\\@{public}/", f"http://{public}\\@{private}/", f"http://{private}#@{public}/")
    yield from (f"http://{private}?@{public}/", f"http://{public}#@{private}/", f"http://{public}%00@{private}/")
    yield from (f"http:/{private}/", f"http:{private}/", f"http:///{private}/", f"//{private}/", f"http:\\\\{private}/")
    yield from (f"http://{private}:80/", f"http://[127.0.0.1]:{port}/", "http://[::1/", f"http://::1:{port}/")
    yield from (f"http://%31%32%37.0.0.1:{port}/", f"http://127.0.0.1%2e:{port}/", f"http://127%2E0.0.1:{port}/")
    yield from (f"http://127.0.0.1\t:{port}/", f"http://127.0.0.1\n:{port}/", f"http://127.0.\r\n0.1:{port}/")
    yield from (f" http://{private}/", f"http://\x00{private}/", f"ht\ntp://{private}/", f"hTTp://{private}/")
    yield from (
        f"ftp://{private}/",
        f"gopher://{private}/",
        "file:///etc/passwd",
        f"ws://{private}/",
        f"dict://{private}/",
    )
    yield from (f"http://localhost.:{port}/", f"http://localhost..:{port}/", f"http://.localhost:{port}/")
    yield from (f"http://[fe80::1%25lo]:{port}/", f"http://[fe80::1%lo]:{port}/", f"http://[::1%25lo]:{port}/")
    yield from (f"http://[::1]{port}/", f"http://[0:0:0:0:0:0:0:0:1]:{port}/", f"http://[v1.::1]:{port}/")
    yield from (f"http://127.0.0.1:{port:05}/", f"http://127.0.0.1:{port + 65536}/", f"http://127.0.0.1:０{port}/")
    yield from (f"http://{{host}}:{port}/", f"http://127.0.0.{{one}}:{port}/", f"http://#host#:{port}/")


def spelled_urls(port: int) -> list[str]:
    """All of them, with the port of a server on this machine."""
    hosts: list[str] = [*PRIVATE_4, *(f"[{one}]" for one in PRIVATE_6)]
    for address in ("127.0.0.1", "169.254.169.254"):
        hosts += numbers(tuple(map(int, address.split("."))))
    hosts += [*look_alikes(), *NAMES]
    return list(dict.fromkeys([*(f"http://{host}:{port}/hit" for host in hosts), *tricks(port)]))
