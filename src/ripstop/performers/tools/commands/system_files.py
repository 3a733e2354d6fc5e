"""The parts of the system that every command can read: programs, libraries, and what they need of `/etc`."""

import os

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    *("alternatives", "ca-certificates", "crypto-policies", "debian_version", "default/locale", "fonts", "group"),
    *("host.conf", "hosts", "java", "java-17-openjdk", "java-21-openjdk", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "lsb-release", "locale.alias", "localtime", "magic", "maven", "mime.types", "nsswitch.conf"),
    *("os-release", "passwd", "perl", "php", "pki/tls/certs", "protocols", "python3", "python3.11", "python3.12"),
    *("python3.13", "services", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone"),
)


def readable_etc() -> list[str]:
    """The files and folders of `/etc` that commands can read and that are there."""
    return [path for name in _ETC if os.path.exists(path := f"/etc/{name}")]
