"use strict";
/* Renders the blocks of a suite (see blocks.py), and the editor that queries the model. */

cfbench.block = function (block, context) {
  return cfbench.blocks[block.type](block, context);
};

cfbench.toned = function (cell, tag, attributes) {
  const text = typeof cell === "string" ? { text: cell } : cell;
  const element = cfbench.h(tag, { ...attributes, class: [attributes?.class, text.tone && `tone ${text.tone}`].filter(Boolean).join(" ") || null, title: text.title || null }, text.text);
  if (text.bar !== null && text.bar !== undefined) {
    element.classList.add("barred");
    element.style.setProperty("--bar", `${Math.round(100 * Math.min(Math.max(text.bar, 0), 1))}%`);
  }
  return element;
};

cfbench.scrolled = function (label, ...children) {
  return cfbench.h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, ...children);
};

cfbench.titled = (title) => (title ? cfbench.h("h2", {}, title) : null);

cfbench.blocks = {
  facts: ({ title, items }) =>
    cfbench.h("section", {}, cfbench.titled(title), cfbench.h("dl", { class: "facts-list" }, items.map(([name, value]) => cfbench.h("div", {}, cfbench.h("dt", {}, name), cfbench.h("dd", {}, value))))),

  note: ({ text, tone }) => cfbench.h("p", { class: `note ${tone}` }, tone === "warn" ? cfbench.h("strong", {}, "Caution. ") : null, text),

  passage: ({ title, parts, note }) =>
    cfbench.h("section", {}, cfbench.titled(title), cfbench.h("blockquote", {}, parts.map((part) => (part.tone ? cfbench.toned(part, "mark", {}) : part.text))), note ? cfbench.h("p", { class: "note muted" }, note) : null),

  grid: ({ title, columns, rows, numeric, note }) => {
    const right = new Set(numeric);
    const of = (n) => ({ class: right.has(n) ? "number" : null });
    const head = columns.map((name, n) => (name ? cfbench.h("th", { scope: "col", ...of(n) }, name) : cfbench.h("td", {})));
    const body = rows.map((row) => cfbench.h("tr", {}, row.map((cell, n) => cfbench.toned(cell, n === 0 ? "th" : "td", n === 0 ? { scope: "row", ...of(n) } : of(n)))));
    return cfbench.h(
      "section",
      {},
      cfbench.titled(title),
      cfbench.scrolled(title || "Table", cfbench.h("table", { class: "results grid" }, cfbench.h("thead", {}, cfbench.h("tr", {}, head)), cfbench.h("tbody", {}, body))),
      note ? cfbench.h("p", { class: "note muted" }, note) : null,
    );
  },

  drawing: ({ title, svg, note }) =>
    cfbench.h("section", {}, cfbench.titled(title), cfbench.scrolled(title, cfbench.drawing(svg)), note ? cfbench.h("p", { class: "note muted" }, note) : null),

  editor: (editor, context) => new cfbench.Editor(editor, context).element,
};

/* What if: fields that can be changed, and the model's answer. */
cfbench.Editor = class {
  constructor(editor, context) {
    this.editor = editor;
    this.context = context;
    this.edit = this.given();
    this.answer = cfbench.h("div", { class: "answer", "aria-live": "polite" });
    this.controls = cfbench.h("div", { class: "fields" });
    this.proposals = cfbench.h("div", { class: "proposals", role: "group", "aria-label": "Answers of explainers" });
    this.added = cfbench.h("span", {});
    this.element = cfbench.h("section", { class: "editor", id: "what-if" }, cfbench.titled(editor.title), cfbench.h("p", { class: "note muted" }, editor.note), this.proposals, this.controls, this.adding(), this.answer, editor.constrainable ? cfbench.constrained(editor, context) : null, editor.curves ? cfbench.curves(context) : null);
    if (cfbench.bundled) {
      this.element.replaceChildren(cfbench.titled(editor.title), cfbench.h("p", { class: "note muted" }, "A bundle has no model to query: open the run with cfbench view."));
      return;
    }
    this.draw();
    this.ask();
  }

  given() {
    try {
      return JSON.parse(this.context.edit || "{}");
    } catch {
      return {};
    }
  }

  fields() {
    const known = new Set(this.editor.fields.map((field) => field.name));
    const names = new Map(this.editor.addable);
    const more = Object.keys(this.edit).filter((name) => !known.has(name));
    return [...this.editor.fields, ...more.map((name) => ({ name, label: names.get(name) || name, kind: "switch", value: false }))];
  }

  draw() {
    const same = (edit) => JSON.stringify(Object.entries(edit).sort()) === JSON.stringify(Object.entries(this.edit).sort());
    const choice = (label, edit) => cfbench.h("button", { type: "button", "aria-pressed": String(same(edit)), onclick: () => this.put(edit) }, label);
    this.proposals.replaceChildren(choice("as it is", {}), ...this.editor.proposals.map((one) => choice(one.label, one.edit)));
    this.controls.replaceChildren(...this.fields().map((field) => this.control(field)));
  }

  control(field) {
    const value = field.name in this.edit ? this.edit[field.name] : field.value;
    const changed = field.name in this.edit;
    if (field.kind === "switch") {
      const text = `${value ? "" : "− "}${!field.value && value ? "+ " : ""}${field.label}`;
      return cfbench.h("button", { type: "button", class: `chip${changed ? " changed" : ""}`, "aria-pressed": String(Boolean(value)), onclick: () => this.set(field, !value) }, text);
    }
    const id = `field-${field.name}`;
    const input =
      field.kind === "number"
        ? cfbench.h("input", { id, type: "number", step: field.step || "any", value: String(value), disabled: field.locked, onchange: (event) => this.set(field, event.target.valueAsNumber) })
        : cfbench.h("select", { id, disabled: field.locked, onchange: (event) => this.set(field, event.target.value) }, field.levels.map((level) => cfbench.h("option", { value: level, selected: level === value }, level)));
    return cfbench.h("div", { class: `field${changed ? " changed" : ""}` }, cfbench.h("label", { for: id }, field.label, field.unit && !field.label.includes(field.unit) ? ` [${field.unit}]` : ""), input, cfbench.h("small", {}, changed ? `was ${field.value}` : field.note));
  }

  adding() {
    if (!this.editor.addable.length) return null;
    const list = cfbench.h("datalist", { id: "addable" }, this.editor.addable.map(([, label]) => cfbench.h("option", { value: label })));
    const add = (event) => {
      const found = this.editor.addable.find(([, label]) => label === event.target.value);
      if (found) {
        event.target.value = "";
        this.put({ ...this.edit, [found[0]]: true });
      }
    };
    return cfbench.h("p", { class: "adding" }, cfbench.h("label", { for: "add" }, "Add: "), cfbench.h("input", { id: "add", list: "addable", autocomplete: "off", onchange: add }), list);
  }

  set(field, value) {
    const edit = { ...this.edit };
    if (value === field.value || Number.isNaN(value)) delete edit[field.name];
    else edit[field.name] = value;
    this.put(edit);
  }

  put(edit) {
    this.edit = { ...edit };
    const { path, given } = cfbench.where();
    const text = Object.keys(edit).length ? JSON.stringify(edit) : "";
    history.replaceState(null, "", cfbench.address(path, { ...given, edit: text }));
    const focused = document.activeElement?.id;
    this.draw();
    if (focused) document.getElementById(focused)?.focus();
    this.ask();
  }

  async ask() {
    const turn = (this.turn = (this.turn || 0) + 1);
    const waiting = setTimeout(() => this.answer.replaceChildren(cfbench.h("p", { class: "note muted" }, "Querying the model; the first query restores it, which may take some seconds.")), 300);
    this.element.setAttribute("aria-busy", "true");
    let content;
    try {
      const { run, table, unit } = this.context;
      const found = await cfbench.post("what-if", { run, table, unit, edit: this.edit });
      content = found.blocks.map((block) => cfbench.block(block, this.context));
    } catch (error) {
      content = [cfbench.h("p", { class: "problem", role: "alert" }, error.message)];
    }
    clearTimeout(waiting);
    if (turn !== this.turn) return;
    this.answer.replaceChildren(...content);
    this.element.removeAttribute("aria-busy");
  }
};
