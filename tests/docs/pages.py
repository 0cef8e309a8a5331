"""Reads the pages of the manual: code blocks with their marks, links, anchors, names in backticks."""

import re
from pathlib import Path
from typing import List, NamedTuple, Optional

ROOT = Path(__file__).resolve().parents[2]
MANUAL = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MARK = re.compile(r"<!-- not run(?: \((?P<word>[^)]+)\))?: (?P<reason>.+) -->$")


class Block(NamedTuple):
    page: Path
    line: int  # of its first line of code
    language: str  # the info string of a fence; "" without one; "indented"
    code: str
    not_run: Optional[str]  # why, of the mark in the line above
    word: Optional[str]  # the mark is for lines with this word alone

    @property
    def where(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def to_run(self):
        """The code without what the mark above excludes."""
        if not self.not_run:
            return self.code
        if not self.word:
            return ""
        return "\n".join(line for line in self.code.split("\n") if self.word not in line)


def blocks(page: Path) -> List[Block]:
    """The code of a page, in order."""
    result, lines, i = [], page.read_text().split("\n"), 0
    while i < len(lines):
        if lines[i].startswith("```"):
            end = lines.index("```", i + 1)
            mark = MARK.match(lines[i - 1]) if i else None
            result.append(Block(page, i + 2, lines[i][3:], "\n".join(lines[i + 1:end]),
                                mark and mark["reason"], mark and mark["word"]))
            i = end + 1
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            end = i
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            result.append(Block(page, i + 1, "indented", "\n".join(lines[i:end]), None, None))
            i = end
        else:
            i += 1
    return result


def prose(page: Path) -> str:
    """A page without its fenced code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def names(page: Path) -> List[str]:
    """What stands in backticks, on one line or two."""
    return [" ".join(name.split()) for name in re.findall(r"`([^`]+)`", prose(page))]


def links(page: Path) -> List[str]:
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)) if not re.match(r"https?:|mailto:", link)]


def anchors(page: Path) -> List[str]:
    """Those of the headings, as GitHub makes them."""
    result = []
    for title in re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        anchor = "".join(c for c in title if c.isalnum() or c in " -_").replace(" ", "-")
        count = sum(re.fullmatch(re.escape(anchor) + r"(-\d+)?", a) is not None for a in result)
        result.append(f"{anchor}-{count}" if count else anchor)
    return result
