# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""dashboard.py DASHBOARD PROMETHEUS START END RATE_INTERVAL [PICTURE.svg] : ask Prometheus for what every panel of a
Grafana dashboard shows between two times (in seconds, as date +%s has them), and say for each query and each variable
whether it returns data: lines for program_verdicts (lib.sh). With PICTURE the answers are drawn, too, panel by panel.
"""
import json
import re
import sys
import urllib.error
import urllib.parse
import urllib.request

COLUMNS, WIDTH, HEIGHT, LEGEND = 3, 460, 150, 13
COLOURS = ("#0b6e4f", "#b23a48", "#3d5a99", "#8a6d1f", "#7b3f8c", "#2a8fa8", "#c2661d", "#4f5b66", "#9a9a1f", "#d1759a",
           "#1f3b73", "#5f9e6e")


class Prometheus:
    """Its HTTP API."""

    def __init__(self, address, start, end, interval):
        self.address, self.start, self.end, self.interval = address, start, end, interval

    def filled(self, text):
        """A query with what Grafana puts in the place of variables: all hosts and devices."""
        text = text.replace("$__rate_interval", self.interval)
        return re.sub(r"\$(instance|device)\b", ".*", text)

    def asked(self, what, **arguments):
        """The data that it answers with."""
        url = f"{self.address}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def series(self, query):
        """A list of (labels, [(time, value)]) for the time in question; without what is no number."""
        found = self.asked("query_range", query=self.filled(query), start=self.start, end=self.end,
                           step=max(1, (self.end - self.start) // 120))["result"]
        found = [(one["metric"], [(float(time), float(value)) for time, value in one["values"]]) for one in found]
        found = [(labels, [point for point in points if point[1] == point[1]]) for labels, points in found]
        return [one for one in found if one[1]]

    def label_values(self, query):
        """What a variable can be, for a query label_values(METRIC, LABEL)."""
        metric, label = re.fullmatch(r"label_values\((.*), *(\w+)\)", query).groups()
        return self.asked(f"label/{label}/values", **{"match[]": self.filled(metric), "start": self.start, "end": self.end})


def legend(template, labels):
    """A name of a series as Grafana makes it."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: labels.get(match[1], ""), template)


def verdict(text, what):
    """One line about something that ought to return data; the data, or nothing."""
    try:
        data = what()
    except (ValueError, OSError) as error:
        print(f"WRONG: {text}\n  {error}")
        return []
    print(f"{'ok' if data else 'WRONG'}: {text}")
    return data


def short(value, unit):
    """A number on an axis, with its unit."""
    if unit == "percentunit":
        return f"{value * 100:.3g} %"
    if unit == "s":
        return f"{value * 1e3:.3g} ms"
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


def escaped(text):
    """For XML."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def drawn(panel, series, left, top, span):
    """A panel as SVG: title, one line for each series from 0 to the largest value, and their names."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    most = max((value for _, points in series for _, value in points), default=0) or 1
    x0, x1, y0, y1 = left + 60, left + WIDTH - 15, top + HEIGHT, top + 25
    yield f'<text x="{x0}" y="{top + 15}" font-size="13" font-weight="bold">{escaped(panel["title"])}</text>'
    for part in (0, 0.5, 1):
        y = y0 - part * (y0 - y1)
        yield f'<line x1="{x0}" x2="{x1}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield f'<text x="{x0 - 5}" y="{y + 4:.1f}" text-anchor="end">{short(most * part, unit)}</text>'
    start, end = span
    for n, (name, points) in enumerate(series):
        line = " ".join(f"{x0 + (time - start) / (end - start) * (x1 - x0):.1f},{y0 - value / most * (y0 - y1):.1f}"
                        for time, value in points)
        colour = COLOURS[n % len(COLOURS)]
        yield f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'
        column, row = n % 2, n // 2
        yield (f'<text x="{x0 + column * 195}" y="{y0 + 16 + row * LEGEND}" fill="{colour}" font-size="10">'
               f'{escaped(name)}</text>')


def picture(panels, span):
    """All panels, in rows that are as high as the longest list of names in them."""
    out, top = [], 10
    for first in range(0, len(panels), COLUMNS):
        row = panels[first:first + COLUMNS]
        for column, (panel, series) in enumerate(row):
            out += drawn(panel, series, column * WIDTH, top, span)
        top += HEIGHT + 30 + LEGEND * max((len(series) + 1) // 2 for _, series in row)
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * WIDTH}" height="{top}" '
            'font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="white"/>\n')
    return head + "\n".join(out) + "\n</svg>\n"


def main():
    """The command."""
    with open(sys.argv[1], encoding="utf-8") as file:
        board = json.load(file)
    prometheus = Prometheus(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    panels, wrong = [], 0
    for variable in board["templating"]["list"]:
        if variable["type"] == "query":
            query = variable["query"]["query"]
            wrong += not verdict(f"variable {variable['name']}: {query}", lambda query=query: prometheus.label_values(query))
    for panel in board["panels"]:
        lines = []
        for target in panel["targets"]:
            query = target["expr"]
            found = verdict(f"{panel['title']}: {query}", lambda query=query: prometheus.series(query))
            wrong += not found
            lines += [(legend(target["legendFormat"], labels), points) for labels, points in found]
        panels.append((panel, lines))
    if len(sys.argv) > 6:
        with open(sys.argv[6], "w", encoding="utf-8") as file:
            file.write(picture(panels, (prometheus.start, prometheus.end)))
    print(f"{sum(len(panel['targets']) for panel in board['panels'])} queries, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
