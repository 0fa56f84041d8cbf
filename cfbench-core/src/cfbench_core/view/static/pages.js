"use strict";
/* The pages: runs, the tables of a run, the units of a cell, one unit, disagreement, two runs. */
{
  const { h, address, get, number, trail } = cfbench;
  const arrow = (direction) => ({ higher: " ↑", lower: " ↓" })[direction] || "";
  const tag = (role) => (role ? [" ", h("span", { class: `tag ${role}` }, role)] : null);
  const option = (value, text, chosen) => h("option", { value, selected: value === chosen }, text);
  const labelled = (id, text, control) => h("div", { class: "filter" }, h("label", { for: id }, text), control);
  let known = null;

  const runs = async () => (known = known || (await get("runs")));
  const nameOf = async (run) => {
    const found = (await runs()).runs[run];
    if (!found) throw new Error(`there is no run ${run}`);
    return found.name;
  };

  /* Runs */

  cfbench.pages.push([[], async () => {
    const { runs: found } = await runs();
    if (found.length === 1) {
      history.replaceState(null, "", address(["run", 0]));
      return cfbench.pages.find(([pattern]) => pattern.length === 2)[1]({}, "0");
    }
    trail(["Runs"]);
    const rows = found.map((run, n) =>
      h("tr", {}, h("th", { scope: "row" }, h("a", { class: "row", href: address(["run", n]) }, run.name)), h("td", {}, run.suite), h("td", {}, run.data), h("td", { class: "number" }, number(run.seed)), h("td", {}, Object.entries(run.statuses).map(([status, count]) => `${count} ${status}`).join(", "))));
    const first = h("select", { id: "first" }, found.map((run, n) => option(String(n), run.name, "0")));
    const second = h("select", { id: "second" }, found.map((run, n) => option(String(n), run.name, "1")));
    const go = () => (location.hash = address(["compare", first.value, second.value]));
    return [
      h("h1", {}, "Runs"),
      cfbench.scrolled("Runs", h("table", { class: "results" }, h("thead", {}, h("tr", {}, ["run", "suite", "data", "seed", "cells"].map((name, n) => h("th", { scope: "col", class: n === 3 ? "number" : null }, name)))), h("tbody", {}, rows))),
      h("h2", {}, "Compare two runs"),
      h("div", { class: "filters" }, labelled("first", "first", first), labelled("second", "second", second), h("button", { type: "button", onclick: go }, "Compare")),
    ];
  }]);

  /* The tables of a run */

  const overviews = {};
  const overview = async (run) => {
    if (!overviews[run]) {
      overviews[run] = await get("overview", { run, quick: "1" });
      if (!overviews[run].significance) {
        get("overview", { run }).then((whole) => {
          overviews[run] = whole;
          if (cfbench.where().path[1] === run && cfbench.where().path.length === 2) cfbench.show(true);
        });
      }
    }
    return overviews[run];
  };

  /* A run that is going on: what it has so far, again every two seconds until it ends. */

  cfbench.every = 2000;
  const soFar = (run, found) => {
    const again = () => cfbench.where().path.join("/") === `run/${run}` && cfbench.show(true);
    setTimeout(again, cfbench.every);
    const shown = found.columns.filter((column) => found.cells.some((cell) => column.name in cell.means));
    const rows = found.cells.map((cell) => h("tr", { class: cell.role ? "controls" : null }, h("th", { scope: "row" }, Object.values(cell.labels).join(" · "), tag(cell.role)), h("td", { class: "number" }, cell.units.toLocaleString("en")), shown.map((column) => h("td", { class: "number" }, number(cell.means[column.name])))));
    const tasks = Object.entries(found.tasks).map(([status, count]) => `${count} ${status}`).join(", ") || "none yet";
    return [
      h("p", { class: "note", id: "so-far" }, `This run is going on. Tasks so far: ${tasks}; ${found.cells.length} of ${found.planned} cells have scores. The page fills by itself; means are over the finished units.`),
      rows.length ? cfbench.scrolled("Scores so far", h("table", { class: "results" }, h("thead", {}, h("tr", {}, [found.row === "explainer" ? "cell" : found.row, "units", ...shown.map((column) => column.name + arrow(column.direction))].map((name, n) => h("th", { scope: "col", class: n ? "number" : null }, name)))), h("tbody", {}, rows))) : null,
    ];
  };

  cfbench.pages.push([["run", "*"], async (given, run) => {
    const heading = (await runs()).runs[run];
    if (heading?.running) {
      const now = await get("progress", { run });
      if (now.running) {
        trail([heading.name]);
        return [h("p", { class: "eyebrow" }, `${heading.suite} suite`), h("h1", {}, heading.name), ...soFar(run, now)].filter(Boolean);
      }
      known = null;
      delete overviews[run];
    }
    const found = await overview(run);
    trail(...((await runs()).runs.length > 1 ? [["Runs", "#/"]] : []), [found.name]);
    const tables = found.tables.filter((table) => table.rows.length && Object.keys(found.labels).every((label) => label === found.row || !given[label] || String(table.labels[label]) === given[label]));
    const metrics = [...new Map(found.tables.flatMap((table) => table.columns).map((column) => [column.metric, column])).values()];
    const hidden = new Set((given.hide || "").split("|").filter(Boolean));
    const statuses = Object.entries(found.statuses).map(([status, count]) => `${count} ${status}`).join(", ");
    return [
      h("p", { class: "eyebrow" }, `${found.suite} suite`),
      h("h1", {}, found.name),
      h("ul", { class: "facts" }, [found.data, `seed ${number(found.seed)}`, `cells: ${statuses}`].filter(Boolean).map((text) => h("li", {}, text))),
      filters(found, given, metrics, hidden),
      found.significance ? null : h("p", { class: "note muted" }, "Significance is being computed; the numbers are final."),
      tables.length ? tables.map((table) => section(run, found, table, given, hidden)) : h("p", {}, "No table fits these filters."),
      h("p", { class: "legend" }, found.legend),
    ].flat().filter(Boolean);
  }]);

  const filters = (found, given, metrics, hidden) => {
    const select = (name, values) => {
      const id = `filter-${name}`;
      return labelled(id, name, h("select", { id, onchange: (event) => cfbench.adjust({ [name]: event.target.value }) }, option("", "all", given[name] || ""), values.map((value) => option(String(value), String(value), given[name] || ""))));
    };
    const inTables = Object.entries(found.labels).filter(([name, values]) => name === found.row || values.some((value) => found.tables.some((table) => String(table.labels[name]) === String(value))));
    const toggle = (metric, on) => {
      const chosen = new Set(hidden);
      on ? chosen.delete(metric) : chosen.add(metric);
      cfbench.adjust({ hide: [...chosen].join("|") });
    };
    const boxes = metrics.map((column, n) => h("div", {}, h("input", { type: "checkbox", id: `metric-${n}`, checked: !hidden.has(column.metric), onchange: (event) => toggle(column.metric, event.target.checked) }), " ", h("label", { for: `metric-${n}`, title: column.question }, column.name + arrow(column.direction))));
    const columns = h("details", { id: "columns", class: "columns", ontoggle: (event) => (filters.open = event.target.open) }, h("summary", { id: "columns-summary" }, `Columns (${metrics.length - hidden.size} of ${metrics.length})`), h("div", { class: "boxes" }, boxes), h("button", { type: "button", id: "all-columns", onclick: () => cfbench.adjust({ hide: "" }) }, "Show all"), " ", h("button", { type: "button", id: "no-columns", onclick: () => cfbench.adjust({ hide: metrics.slice(1).map((column) => column.metric).join("|") }) }, "Only the first"));
    columns.open = Boolean(filters.open);
    return h("div", { class: "filters" }, inTables.map(([name, values]) => select(name, values)), select("role", ["competitors", "certified", "reference", "baseline"]), columns);
  };

  const section = (run, found, table, given, hidden) => {
    const shown = table.columns.map((_, n) => n).filter((n) => table.columns[n].shown && !hidden.has(table.columns[n].metric));
    const [sort, descending] = [given.sort || "", given.desc === "1"];
    const place = table.columns.findIndex((column) => column.metric === sort);
    let rows = table.rows.filter((row) => (!given[found.row] || row.name === given[found.row] || row.name.startsWith(`${given[found.row]},`)) && (!given.role || (given.role === "competitors" ? !row.role : row.role === given.role)));
    if (place >= 0) rows = cfbench.sorted(rows, (row) => row.entries[place].order, descending);
    const head = shown.map((n) => {
      const column = table.columns[n];
      const state = sort === column.metric ? (descending ? "descending" : "ascending") : null;
      const click = () => cfbench.adjust({ sort: column.metric, desc: state === (column.direction === "lower" ? "ascending" : "descending") ? (descending ? "" : "1") : column.direction === "lower" ? "" : "1" });
      return h("th", { scope: "col", class: "number", "aria-sort": state, title: column.question || null }, h("button", { type: "button", id: `sort-${table.number}-${n}`, onclick: click }, (column.metric === table.primary ? "★ " : "") + column.name + arrow(column.direction)));
    });
    const body = rows.map((row) =>
      h("tr", { class: row.role ? "controls" : null },
        h("th", { scope: "row" }, h("a", { class: "row", href: address(["run", run, "cell", row.cell]) }, row.name), tag(row.role), row.status === "partial" ? [" ", h("span", { class: "tag" }, "incomplete")] : null),
        row.outcome ? h("td", { class: "outcome", colspan: shown.length || 1 }, row.outcome) : shown.map((n) => entry(run, table, row, n))));
    const metric = shown.some((n) => table.columns[n].metric === table.primary) ? table.primary : table.columns[shown.find((n) => table.columns[n].direction) ?? shown[0]]?.metric;
    const picture = h("div", { class: "drawing" });
    const draw = async (event) => {
      if (event.target.open && metric) picture.replaceChildren(cfbench.drawing((await get("chart", { run, table: table.number, metric })).svg) || h("p", {}, "Nothing to draw."));
    };
    const quality = Object.entries(table.quality).map(([name, value]) => `${name} ${number(value)}`).join(", ");
    return h("section", { class: "table" },
      h("h2", {}, table.title),
      quality ? h("p", { class: "note muted" }, `Model quality on held-out data: ${quality}`) : null,
      cfbench.scrolled(table.title, h("table", { class: "results" }, h("caption", { class: "hidden" }, table.texts.join(", ")), h("thead", {}, h("tr", {}, h("th", { scope: "col" }, found.row), head)), h("tbody", {}, body))),
      h("p", { class: "links" }, metric ? h("a", { href: address(["run", run, "table", table.number, "disagreement"], { metric }) }, "Where explainers disagree most") : null),
      h("details", { class: "drawn", ontoggle: draw }, h("summary", {}, `Chart of ${metric || "the first column"}`), picture),
      table.notes.length ? h("details", {}, h("summary", {}, `Notes (${table.notes.length})`), h("ul", { class: "asides" }, table.notes.map((note) => h("li", {}, note)))) : null);
  };

  const entry = (run, table, row, n) => {
    const value = row.entries[n], column = table.columns[n];
    const sort = column.name.startsWith("time per") ? column.name : column.metric;
    const worst = column.direction === "lower" || column.direction === "" ? "1" : "";
    const link = h("a", { href: address(["run", run, "cell", row.cell], { sort, desc: worst }), "aria-label": `${row.name}, ${column.name}: ${value.text}; its units` }, value.text);
    return h("td", { class: `number ${value.emphasis}` }, h("span", {}, link), value.coverage ? h("small", {}, value.coverage) : null);
  };

  /* The units of a cell */

  cfbench.pages.push([["run", "*", "cell", "*"], async (given, run, cell) => {
    const found = await get("units", { run, cell, size: 50, ...given });
    trail([await nameOf(run), address(["run", run])], [`${found.name} · ${found.texts.join(" · ")}`]);
    const pages = Math.max(1, Math.ceil(found.total / found.size));
    const open = (page) => address(["run", run, "cell", cell], { ...given, page: page || "" });
    const head = found.columns.map((column, n) => {
      const state = given.sort === column.name ? (given.desc === "1" ? "descending" : "ascending") : null;
      const click = () => cfbench.adjust({ sort: column.name, desc: state === "ascending" ? "1" : "", page: "" });
      return h("th", { scope: "col", class: column.metric ? "number" : null, "aria-sort": state, title: column.question || null }, h("button", { type: "button", id: `by-${n}`, onclick: click }, column.name + arrow(column.direction)));
    });
    const body = found.rows.map((row) => h("tr", {}, row.map((value, n) => (n === 0 ? h("th", { scope: "row" }, h("a", { class: "row", href: address(["run", run, "table", found.table, "unit", value]) }, String(value))) : h("td", { class: found.columns[n].metric ? "number" : null }, number(value))))));
    let timer = null;
    const search = h("input", { type: "search", id: "search", value: given.q || "", autocomplete: "off", oninput: (event) => { clearTimeout(timer); timer = setTimeout(() => cfbench.adjust({ q: event.target.value, page: "" }), 200); } });
    const cards = found.columns.filter((column) => column.metric).map((column) => distribution(column, found, given));
    return [
      h("p", { class: "eyebrow" }, found.texts.join(" · ")),
      h("h1", {}, found.name, tag(found.role)),
      found.reason ? h("p", { class: "note warn" }, found.reason) : null,
      h("details", { class: "drawn", open: true }, h("summary", {}, `Distributions over ${found.all.toLocaleString("en")} units`), h("div", { class: "spread" }, cards)),
      mostEdited(found.edited),
      h("div", { class: "filters" }, labelled("search", "search", search), h("p", { class: "total" }, `${found.total.toLocaleString("en")} of ${found.all.toLocaleString("en")} units`)),
      cfbench.scrolled("Units", h("table", { class: "results" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body))),
      h("nav", { class: "pager", "aria-label": "Pages" }, found.page > 0 ? h("a", { rel: "prev", href: open(found.page - 1) }, "Previous") : h("span", {}, "Previous"), h("span", {}, `page ${found.page + 1} of ${pages}`), found.page < pages - 1 ? h("a", { rel: "next", href: open(found.page + 1) }, "Next") : h("span", {}, "Next")),
    ].filter(Boolean);
  }]);

  /* What the answers of a cell edit most often. */
  const mostEdited = (edited) => {
    if (!edited) return null;
    const rows = edited.rows.map(([name, count]) => h("tr", {}, h("th", { scope: "row" }, name), cfbench.toned({ text: `${count.toLocaleString("en")} of ${edited.of.toLocaleString("en")}`, bar: count / edited.of }, "td", { class: "number" })));
    const more = edited.all - edited.rows.length;
    return h("details", { class: "drawn", id: "edited" }, h("summary", {}, "Most often edited"), cfbench.scrolled("Most often edited", h("table", { class: "results grid" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, edited.label), h("th", { scope: "col", class: "number" }, "units"))), h("tbody", {}, rows))), more > 0 ? h("p", { class: "note muted" }, `And ${more.toLocaleString("en")} more.`) : null);
  };

  /* A histogram: as many bars as bins, and in words for those who do not see it. */
  const distribution = (column, found, given) => {
    const { counts, low, high, mean, missing } = found.distributions[column.name];
    const most = Math.max(1, ...counts);
    const space = "http://www.w3.org/2000/svg";
    const drawing = document.createElementNS(space, "svg");
    const words = counts.length ? `${column.name}: ${number(low)} to ${number(high)}, mean ${number(mean)}` : `${column.name}: no value`;
    for (const [name, value] of Object.entries({ viewBox: "0 0 120 32", role: "img", "aria-label": words, preserveAspectRatio: "none" })) drawing.setAttribute(name, value);
    counts.forEach((count, n) => {
      const bar = document.createElementNS(space, "rect");
      const height = count ? Math.max(1, (30 * count) / most) : 0;
      for (const [name, value] of Object.entries({ x: (120 * n) / counts.length, y: 32 - height, width: Math.max(1, 120 / counts.length - 0.8), height, class: "amount" })) bar.setAttribute(name, value);
      drawing.append(bar);
    });
    return h("figure", { class: given.sort === column.name ? "chosen" : null }, h("figcaption", { title: column.question || null }, h("strong", {}, column.name + arrow(column.direction))), drawing, h("p", {}, counts.length ? `${number(low)} … ${number(high)}, mean ${number(mean)}` : "no value", missing ? `, ${missing} missing` : ""));
  };

  /* One unit */

  cfbench.pages.push([["run", "*", "table", "*", "unit", "*"], async (given, run, table, unit) => {
    const found = await get("unit", { run, table, unit });
    const up = given.from || found.rows[0]?.cell;
    trail([await nameOf(run), address(["run", run])], [found.texts.join(" · "), address(["run", run, "cell", up])], [unit]);
    const context = { run, table, unit, edit: given.edit, rows: found.rows };
    const at = (other) => address(["run", run, "table", table, "unit", other]);
    const columns = found.columns;
    const details = [...new Set(found.rows.flatMap((row) => Object.keys(row.details)))];
    const best = columns.map((column, n) => {
      const values = found.rows.map((row) => row.values[n]).filter((value) => value !== null);
      return column.direction && values.length ? Math[column.direction === "lower" ? "min" : "max"](...values) : null;
    });
    const rows = found.rows.map((row) =>
      h("tr", { class: row.role ? "controls" : null }, h("th", { scope: "row" }, h("a", { class: "row", href: address(["run", run, "cell", row.cell]) }, row.name), tag(row.role)), row.values.map((value, n) => h("td", { class: `number${value !== null && value === best[n] ? " best" : ""}` }, number(value))), h("td", { class: "number" }, row.seconds === null ? "–" : number(row.seconds * 1000)), details.map((name) => h("td", { class: "number" }, number(row.details[name])))));
    const head = [[found.row, ""], ...columns.map((column) => [column.name + arrow(column.direction), column.question]), ["time (ms) ↓", ""], ...details.map((name) => [name, ""])];
    return [
      h("p", { class: "eyebrow" }, found.texts.join(" · ")),
      h("h1", {}, unit),
      h("nav", { class: "pager", "aria-label": "Units" }, found.before ? h("a", { rel: "prev", href: at(found.before) }, "Previous unit") : null, found.after ? h("a", { rel: "next", href: at(found.after) }, "Next unit") : null),
      ...found.blocks.map((block) => cfbench.block(block, context)),
      h("h2", {}, "Scores, cost and certificates"),
      cfbench.scrolled("Scores of this unit", h("table", { class: "results" }, h("thead", {}, h("tr", {}, head.map(([name, question], n) => h("th", { scope: "col", class: n ? "number" : null, title: question || null }, name)))), h("tbody", {}, rows))),
      h("p", { class: "note muted" }, "Bold: the best value for this unit. Times of a batch are shared evenly by its units."),
    ];
  }]);

  /* Where explainers disagree */

  cfbench.pages.push([["run", "*", "table", "*", "disagreement"], async (given, run, table) => {
    const whole = (await overview(run)).tables[table];
    const found = await get("disagreement", { run, table, ...given });
    trail([await nameOf(run), address(["run", run])], ["Disagreement"]);
    const choices = whole.columns.filter((column) => column.metric !== "time").map((column) => option(column.metric, column.name, given.metric));
    const pages = Math.max(1, Math.ceil(found.total / found.size));
    const open = (page) => address(["run", run, "table", table, "disagreement"], { ...given, page: page || "" });
    const rows = found.rows.map((row) => h("tr", {}, h("th", { scope: "row" }, h("a", { class: "row", href: address(["run", run, "table", table, "unit", row.unit]) }, row.unit)), h("td", { class: "number best" }, number(row.spread)), row.values.map((value) => h("td", { class: "number" }, number(value)))));
    return [
      h("p", { class: "eyebrow" }, whole.texts.join(" · ")),
      h("h1", {}, "Where explainers disagree most"),
      h("p", {}, "Units by the distance between the largest and the smallest value of the competing explainers."),
      h("div", { class: "filters" }, labelled("metric", "metric", h("select", { id: "metric", onchange: (event) => cfbench.adjust({ metric: event.target.value, page: "" }) }, choices))),
      cfbench.scrolled("Units", h("table", { class: "results" }, h("thead", {}, h("tr", {}, ["unit", "distance", ...found.explainers].map((name, n) => h("th", { scope: "col", class: n ? "number" : null }, name)))), h("tbody", {}, rows))),
      h("nav", { class: "pager", "aria-label": "Pages" }, found.page > 0 ? h("a", { rel: "prev", href: open(found.page - 1) }, "Previous") : h("span", {}, "Previous"), h("span", {}, `page ${found.page + 1} of ${pages}`), found.page < pages - 1 ? h("a", { rel: "next", href: open(found.page + 1) }, "Next") : h("span", {}, "Next")),
    ];
  }]);

  /* Two runs */

  cfbench.pages.push([["compare", "*", "*"], async (given, first, second) => {
    const found = await get("compare", { first, second });
    trail(["Runs", "#/"], [`${found.first} and ${found.second}`]);
    const changed = given.all === "1" ? found.differences : found.differences.filter((one) => ["better", "worse", "different"].includes(one.verdict));
    const signs = { better: "▲ better", worse: "▼ worse" };
    const rows = changed.map((one) => h("tr", {}, h("th", { scope: "row" }, one.cell), h("td", {}, one.metric + arrow(one.direction)), [one.first, one.second].map((value) => h("td", { class: "number" }, number(value))), h("td", { class: "number" }, `${one.difference > 0 ? "+" : ""}${number(one.difference)} [${number(one.ci_low)}, ${number(one.ci_high)}]`), h("td", { class: "number" }, number(one.n)), h("td", { class: `tone ${{ better: "good", worse: "bad" }[one.verdict] || ""}` }, signs[one.verdict] || one.verdict)));
    const config = found.config.map((one) => h("tr", {}, h("th", { scope: "row" }, one.name), h("td", {}, one.first ?? "–"), h("td", {}, one.second ?? "–")));
    return [
      h("h1", {}, `${found.first} and ${found.second}`),
      h("p", {}, `${found.differences.filter((one) => ["better", "worse", "different"].includes(one.verdict)).length} of ${found.differences.length} values differ by more than chance (95% paired interval). ${found.only_first.length} cells are only in the first run, ${found.only_second.length} only in the second.`),
      h("div", { class: "filters" }, h("div", {}, h("input", { type: "checkbox", id: "all", checked: given.all === "1", onchange: (event) => cfbench.adjust({ all: event.target.checked ? "1" : "" }) }), " ", h("label", { for: "all" }, "show all values"))),
      rows.length ? cfbench.scrolled("Differences", h("table", { class: "results" }, h("thead", {}, h("tr", {}, ["cell", "metric", "first", "second", "difference", "units", "the second is"].map((name, n) => h("th", { scope: "col", class: n > 1 && n < 6 ? "number" : null }, name)))), h("tbody", {}, rows))) : h("p", {}, "Nothing differs."),
      config.length ? h("h2", {}, "Configuration") : null,
      config.length ? cfbench.scrolled("Configuration", h("table", { class: "results" }, h("thead", {}, h("tr", {}, ["setting", "first", "second"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, config))) : null,
    ].filter(Boolean);
  }]);
}
