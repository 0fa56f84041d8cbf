"use strict";
/* The base of the viewer: elements, where data comes from (a server, or shards of a bundle), addresses, keys. */

const cfbench = { pages: [], pending: {}, shards: {} };

/* An element. Texts are never parsed as HTML. */
cfbench.h = function (tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
};

/* A drawing of the chart library. It is parsed apart from the page, where nothing in it can run. */
cfbench.drawing = function (text) {
  return text ? document.adoptNode(new DOMParser().parseFromString(text, "text/html").querySelector("svg")) : null;
};

cfbench.number = function (value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  if (size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(4)));
};

/* Data: a name and parameters -> JSON. */

cfbench.shard = function (name, data) {
  cfbench.shards[name] = data;
};

cfbench.load = function (name) {
  if (name in cfbench.shards) return Promise.resolve(cfbench.shards[name]);
  if (!cfbench.pending[name]) {
    cfbench.pending[name] = new Promise((resolve, reject) => {
      const script = cfbench.h("script", { src: `data/${name}.js` });
      script.onload = () => resolve(cfbench.shards[name]);
      script.onerror = () => reject(new Error("this bundle does not have this page; 'cfbench view' has"));
      document.head.append(script);
    });
  }
  return cfbench.pending[name];
};

cfbench.get = async function (name, parameters) {
  if (cfbench.bundled) return cfbench.fromBundle(name, parameters || {});
  const response = await fetch(`api/${name}?${new URLSearchParams(parameters || {})}`);
  return cfbench.checked(response);
};

cfbench.post = async function (name, body) {
  const headers = { "Content-Type": "application/json" };
  return cfbench.checked(await fetch(`api/${name}`, { method: "POST", headers, body: JSON.stringify(body) }));
};

cfbench.checked = async function (response) {
  const type = response.headers.get("content-type") || "";
  const found = type.includes("json") ? await response.json() : { error: await response.text() };
  if (!response.ok) throw new Error(found.error || response.statusText);
  return found;
};

cfbench.fromBundle = async function (name, given) {
  if (name === "runs") return cfbench.load("runs");
  if (name === "overview") return cfbench.load(`overview-${given.run}`);
  if (name === "compare") return cfbench.load(`compare-${given.first}-${given.second}`);
  if (name === "chart") return { svg: (await cfbench.load(`charts-${given.run}`))[`${given.table} ${given.metric}`] };
  if (name === "units") return cfbench.paged(await cfbench.load(`units-${given.run}-${given.cell}`), given);
  if (name === "unit") {
    const places = await cfbench.load(`index-${given.run}-${given.table}`);
    if (!(given.unit in places)) throw new Error("this bundle does not have this unit's page; 'cfbench view' has");
    return (await cfbench.load(`unit-${given.run}-${given.table}-${places[given.unit]}`))[given.unit];
  }
  if (name === "disagreement") return cfbench.disagreement(given);
  throw new Error(`no ${name} in a bundle`);
};

/* What the server does for a page of units, on all rows of a cell. */
cfbench.paged = function (all, given) {
  const size = Number(given.size || 50), page = Number(given.page || 0);
  const texts = all.columns.map((column, n) => (column.metric ? -1 : n)).filter((n) => n >= 0);
  const words = (given.q || "").toLowerCase();
  let rows = all.rows.filter((row) => texts.some((n) => String(row[n]).toLowerCase().includes(words)));
  const place = all.columns.findIndex((column) => column.name === given.sort);
  if (place >= 0) rows = cfbench.sorted(rows, (row) => row[place], given.desc === "1");
  return { ...all, rows: rows.slice(page * size, (page + 1) * size), total: rows.length, page, size };
};

/* Missing values come last in both directions, as in pandas. */
cfbench.sorted = function (rows, key, descending) {
  const missing = (value) => value === null || value === undefined;
  return [...rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (missing(x) || missing(y)) return missing(x) - missing(y);
    const order = typeof x === "number" && typeof y === "number" ? x - y : x < y ? -1 : x > y ? 1 : 0;
    return descending ? -order : order;
  });
};

cfbench.disagreement = async function (given) {
  const overview = await cfbench.load(`overview-${given.run}`);
  const table = overview.tables[given.table];
  const rows = table.rows.filter((row) => !row.role && !row.outcome);
  const units = new Map();
  const explainers = [];
  for (const row of rows) {
    const found = await cfbench.load(`units-${given.run}-${row.cell}`);
    const place = found.columns.findIndex((column) => column.name === given.metric);
    if (place < 0) continue;
    explainers.push(row.name);
    for (const values of found.rows) {
      if (!units.has(values[0])) units.set(values[0], []);
      units.get(values[0])[explainers.length - 1] = values[place];
    }
  }
  const listed = [...units].map(([unit, values]) => {
    const filled = explainers.map((_, n) => (values[n] === undefined ? null : values[n]));
    const known = filled.filter((value) => value !== null);
    return { unit, values: filled, spread: known.length > 1 ? Math.max(...known) - Math.min(...known) : null };
  });
  const order = cfbench.sorted(listed, (row) => row.spread, true);
  const page = Number(given.page || 0), size = 50;
  return { ...given, explainers, rows: order.slice(page * size, (page + 1) * size), total: order.length, page, size };
};

/* Addresses: every state is one, "#/run/0/cell/3?sort=time". */

cfbench.address = function (path, parameters) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters || {})) {
    if (value !== "" && value !== null && value !== undefined) query.set(name, value);
  }
  const text = query.toString();
  return `#/${path.map((part) => encodeURIComponent(part)).join("/")}${text ? `?${text}` : ""}`;
};

cfbench.where = function () {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").filter((part) => part !== "").map(decodeURIComponent);
  return { path: parts, given: Object.fromEntries(new URLSearchParams(query || "")) };
};

/* Changes parameters of this page in place: no step of the history for each letter that is typed. */
cfbench.adjust = function (changes) {
  const { path, given } = cfbench.where();
  history.replaceState(null, "", cfbench.address(path, { ...given, ...changes }));
  return cfbench.show(true);
};

cfbench.say = function (text) {
  document.getElementById("status").textContent = text;
};

cfbench.trail = function (...steps) {
  const links = steps.map(([text, href]) => (href ? cfbench.h("a", { href }, text) : cfbench.h("span", { "aria-current": "page" }, text)));
  document.getElementById("trail").replaceChildren(...links);
  document.title = `${steps.map(([text]) => text).reverse().join(" · ") || "Runs"} · cfbench`;
};

cfbench.turn = 0;
cfbench.show = async function (stays) {
  const main = document.getElementById("main");
  const { path, given } = cfbench.where();
  const turn = ++cfbench.turn;
  main.setAttribute("aria-busy", "true");
  const focused = stays && document.activeElement ? document.activeElement.id : "";
  let content;
  try {
    const page = cfbench.pages.find(([pattern]) => pattern.length === path.length && pattern.every((part, n) => part === "*" || part === path[n]));
    if (!page) throw new Error("there is no such page");
    content = await page[1](given, ...path.filter((_, n) => page[0][n] === "*"));
  } catch (error) {
    content = [cfbench.h("h1", {}, "This cannot be shown"), cfbench.h("p", { class: "problem", role: "alert" }, error.message)];
  }
  if (turn !== cfbench.turn) return; // another page was opened meanwhile
  main.replaceChildren(...content);
  main.removeAttribute("aria-busy");
  if (focused && document.getElementById(focused)) {
    const again = document.getElementById(focused);
    again.focus();
    if (again.type === "search") again.setSelectionRange(again.value.length, again.value.length);
  } else if (!stays) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
  cfbench.say(document.title);
};

/* Keys */

cfbench.rows = () => [...document.querySelectorAll("main tbody a.row")];

cfbench.keys = {
  "/": () => document.querySelector("input[type=search]")?.focus(),
  j: () => cfbench.step(1),
  k: () => cfbench.step(-1),
  "[": () => document.querySelector("a[rel=prev]")?.click(),
  "]": () => document.querySelector("a[rel=next]")?.click(),
  u: () => [...document.querySelectorAll("#trail a")].pop()?.click(),
  "?": () => document.getElementById("keys").showModal(),
};

cfbench.step = function (by) {
  const rows = cfbench.rows();
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[next]?.focus();
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
  const action = cfbench.keys[event.key];
  if (action && !document.getElementById("keys").open) {
    event.preventDefault();
    action();
  }
});

window.addEventListener("hashchange", () => cfbench.show(false));
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("help").addEventListener("click", () => document.getElementById("keys").showModal());
  document.querySelector("a.skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  cfbench.bundled = document.querySelector("meta[name=cfbench-bundle]") !== null;
  cfbench.show(false);
});
