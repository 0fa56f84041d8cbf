"""Downloads that survive a broken line, and are what they should be or are not there at all.

A file grows as ``name.part``; a download that breaks off, stalls or is killed resumes where it stopped
(HTTP Range), provided the server says that the file is still the same (If-Range, with the ETag or date it
gave at first). The file gets its name when its size and SHA-256 are right.

Why not pooch, which is made for this: it begins again from the first byte after every break, and these files
may have hundreds of megabytes. What is needed beyond the standard library is little.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import re
import socket
import ssl
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cfbench_core.content_checks import limited, wrong_beginning
from cfbench_core.data_types import DataFile, Progress
from cfbench_core.errors import UserError
from cfbench_core.files import sync, write_atomically
from cfbench_core.locks import alone
from cfbench_core.plain_text import one_line

BLOCK = 1 << 16
TRANSIENT_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Patience:
    """How long to try. Attempts are counted anew whenever the file has grown.

    Attributes:
        attempts: without any progress, until it is given up.
        timeout: seconds without a byte until a connection counts as dead.
        pause: seconds before the second attempt, doubled for each further one.
    """

    attempts: int = 4
    timeout: float = 30.0
    pause: float = 1.0


DEFAULT_PATIENCE = Patience()


class _BrokenError(Exception):
    """The line broke; another attempt may help."""


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to an address that anybody on the way could answer for."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        scheme = urlsplit(newurl).scheme.lower()
        if urlsplit(req.full_url).scheme.lower() == "https" and scheme != "https":
            raise UserError(f"{req.full_url}: redirects to {one_line(newurl, 200)}, which is not encrypted")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _NoWebPages(urllib.request.BaseHandler):
    """Refuses a page for people in place of a file, before a byte of it is stored."""

    handler_order = 400  # before the handlers of errors

    def http_response(self, request: urllib.request.Request, response: Any) -> Any:
        kind = str(response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
        page = kind in ("text/html", "application/xhtml+xml")
        wanted = Path(urlsplit(request.full_url).path).suffix.lower() in (".html", ".htm")
        if 200 <= response.status < 300 and page and not wanted:
            raise UserError(
                f"{request.full_url}: the server sent a web page, not data (a login or an error page?)"
            )
        return response

    https_response = http_response


def download(
    file: DataFile, folder: Path, progress: Progress | None = None, patience: Patience = DEFAULT_PATIENCE
) -> Path:
    """``folder/file.name``, downloaded. What is there already, and right, is not downloaded again.

    Raises:
        UserError: if the server does not have it, cannot be reached, or serves something else.
    """
    if urlsplit(file.url).scheme not in ("http", "https"):
        raise UserError(f"{file.url}: only http and https are downloaded from")
    target = folder / file.name
    with alone(folder / f".{file.name}.lock"):
        if target.is_file() and not _fault(file, target):
            return target
        part = _Part(file, target.with_name(target.name + ".part"))
        _complete(part, progress or (lambda name, done, total: None), patience)
        fault = _fault(file, part.path)
        if fault and part.resumed:  # perhaps two halves of two files: once more, in one piece
            part.discard()
            _complete(part, progress or (lambda name, done, total: None), patience)
            fault = _fault(file, part.path)
        if fault:
            part.discard()
            raise UserError(
                f"{file.url}: {fault}. The file was changed by its owner or on the way; it was discarded."
            )
        sync(part.path)
        part.path.replace(target)
        part.validator_path.unlink(missing_ok=True)
    return target


class _Part:
    """The beginning of a file, and what its server said to recognise it by."""

    def __init__(self, file: DataFile, path: Path) -> None:
        self.file = file
        self.path = path
        self.validator_path = path.with_name(path.name + ".json")
        self.resumed = self.size > 0
        if not self.validator or (file.bytes is not None and self.size > file.bytes):
            self.discard()

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def complete(self) -> bool:
        return self.path.exists() and self.size == self.file.bytes

    @property
    def validator(self) -> str:
        """A strong ETag or a date; empty when a beginning cannot be recognised as one of this file."""
        try:
            known = json.loads(self.validator_path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return ""
        return str(known.get("validator", "")) if known.get("url") == self.file.url else ""

    def begin(self, headers: Any) -> None:
        """Forgets what there was, and remembers how to recognise what comes."""
        self.discard()
        etag = str(headers.get("ETag") or "")
        validator = etag if etag and not etag.startswith("W/") else str(headers.get("Last-Modified") or "")
        if validator:
            write_atomically(self.validator_path, json.dumps({"url": self.file.url, "validator": validator}))

    def discard(self) -> None:
        self.path.unlink(missing_ok=True)
        self.validator_path.unlink(missing_ok=True)
        self.resumed = False


def _complete(part: _Part, progress: Progress, patience: Patience) -> None:
    """Attempts until all is there."""
    failures, longest = 0, part.size
    while not part.complete:
        try:
            _attempt(part, progress, patience.timeout)
            return
        except _BrokenError as broken:
            failures = 1 if part.size > longest else failures + 1
            longest = max(longest, part.size)
            if failures >= patience.attempts:
                raise UserError(
                    f"{part.file.url}: {broken} ({failures} attempts). The same command resumes the download."
                ) from broken
            time.sleep(patience.pause * 2 ** (failures - 1))


def _attempt(part: _Part, progress: Progress, timeout: float) -> None:
    """One connection: takes up a beginning that is there, or starts anew."""
    request = urllib.request.Request(
        part.file.url, headers={"User-Agent": "cfbench", "Accept-Encoding": "identity"}
    )
    if part.size and not part.validator:
        part.discard()
    if part.size:
        request.add_header("Range", f"bytes={part.size}-")
        request.add_header("If-Range", part.validator)
    with _connection_trouble(part), _opened(request, timeout) as response:
        continued = response.status == 206 and _range_start(response.headers) == part.size
        if response.status == 206 and not continued:
            part.discard()
            raise _BrokenError("the server sent another range than was requested")
        if continued:
            part.resumed = True
        else:
            part.begin(response.headers)
        _receive(response, part, progress)


def _opened(request: urllib.request.Request, timeout: float) -> Any:
    return urllib.request.build_opener(_SecureRedirects, _NoWebPages).open(request, timeout=timeout)


def _receive(response: Any, part: _Part, progress: Progress) -> None:
    length = response.headers.get("Content-Length")
    total = part.size + int(length) if length and length.isdigit() else None
    expected = part.file.bytes
    if expected is not None and total is not None and total != expected:
        part.discard()
        raise UserError(
            f"{part.file.url}: has {total:,} bytes, must have {expected:,}: its owner changed it."
        )
    done = part.size
    with part.path.open("ab") as out:
        progress(part.file.name, done, total or expected)
        # read1 gives what has come, however little, so that nothing is lost when the line breaks
        while block := response.read1(BLOCK):
            out.write(block)
            done += len(block)
            if expected is not None and done > expected:
                break  # the size is wrong, which the check of the whole will say
            progress(part.file.name, done, total or expected)
    if total is not None and done < total:
        raise _BrokenError(f"the connection broke off after {done:,} of {total:,} bytes")


def _range_start(headers: Any) -> int | None:
    found = re.match(r"bytes (\d+)-", str(headers.get("Content-Range") or ""))
    return int(found[1]) if found else None


@contextlib.contextmanager
def _connection_trouble(part: _Part) -> Iterator[None]:
    """Raises ``_BrokenError`` for transient errors and ``UserError`` for permanent ones."""
    url = part.file.url
    try:
        yield
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 416:  # nothing lies behind what we have: it is not the beginning of this file
                part.discard()
                raise _BrokenError("the server does not know the rest of the file") from error
            if error.code in TRANSIENT_STATUS:
                raise _BrokenError(f"the server answers {error.code} {error.reason}") from error
            raise UserError(f"{url}: the server answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, socket.gaierror):
            raise UserError(
                f"{url}: {urlsplit(url).hostname} is not known here: is there a network?"
            ) from error
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise UserError(
                f"{url}: its certificate is not trusted ({error.reason.verify_message})"
            ) from error
        raise _BrokenError(_describe(error.reason)) from error
    except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
        raise _BrokenError(_describe(error)) from error


def _describe(error: object) -> str:
    if isinstance(error, TimeoutError):
        return "the server does not answer"
    if isinstance(error, http.client.HTTPException):
        return "the connection broke off"
    return str(getattr(error, "strerror", None) or error)


def _fault(file: DataFile, path: Path) -> str:
    """What is wrong with a file that is there: "has 3 bytes, must have 4"; empty when nothing is."""
    size = path.stat().st_size
    if file.bytes is not None and size != file.bytes:
        return f"has {size:,} bytes, must have {file.bytes:,}"
    if file.sha256 is not None:
        with path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
        if found != file.sha256:
            return f"its sha256 is {found}, must be {file.sha256}"
    if file.sha256 is None:
        return wrong_beginning(path, file.name)
    return ""


def extract(archive: Path, members: Sequence[str], folder: Path) -> list[Path]:
    """Takes named members out of a zip archive into ``folder``, each under the last part of its name.

    Only what is named is taken, and only its last name counts: an archive cannot write anywhere else.

    Raises:
        UserError: if the archive is damaged, or lacks a member.
    """
    names = {member: member.rpartition("/")[2] for member in members}
    for member, name in names.items():
        if name in ("", ".", "..") or "\\" in name or ":" in name:
            raise UserError(f"{archive}: {member!r} is no name for a file")
    try:
        with zipfile.ZipFile(archive) as zipped:
            for member, name in names.items():
                _extract_member(zipped, member, folder / name)
    except KeyError as error:  # "There is no item named ..."
        raise UserError(f"{archive}: {error.args[0]}") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{archive}: is no readable zip archive ({error})") from None
    return [folder / name for name in names.values()]


def _extract_member(zipped: zipfile.ZipFile, member: str, target: Path) -> None:
    part = target.with_name(target.name + ".part")
    try:
        packed = min(zipped.getinfo(member).compress_size, Path(str(zipped.filename)).stat().st_size)
        with zipped.open(member) as raw, part.open("wb") as out:
            content = limited(raw, target.parent, packed, member)
            while block := content.read(BLOCK):
                out.write(block)
        sync(part)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
