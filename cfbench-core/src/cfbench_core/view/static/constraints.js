"use strict";
/* Constraints, then again: lock fields, set ranges, and query one explainer anew for this unit. */

cfbench.constrained = function (editor, context) {
  const { h } = cfbench;
  const locked = new Set();
  const ranges = {};
  const fields = editor.fields.filter((field) => !field.locked);
  const which = h("select", { id: "again-explainer" }, context.rows.map((row) => h("option", { value: String(row.cell) }, row.role ? `${row.name} (${row.role})` : row.name)));
  const answer = h("div", { class: "again-answer", "aria-live": "polite" });

  const lock = (field) => {
    const button = h("button", { type: "button", class: "chip lock", "aria-pressed": "false" }, field.label);
    button.addEventListener("click", () => {
      locked.has(field.name) ? locked.delete(field.name) : locked.add(field.name);
      button.setAttribute("aria-pressed", String(locked.has(field.name)));
      button.textContent = locked.has(field.name) ? `${field.label}: locked` : field.label;
    });
    return button;
  };

  const range = (field, n) => {
    const ends = [field.low, field.high];
    const put = (place) => (event) => {
      ends[place] = Number.isNaN(event.target.valueAsNumber) ? [field.low, field.high][place] : event.target.valueAsNumber;
      if (ends[0] === field.low && ends[1] === field.high) delete ranges[field.name];
      else ranges[field.name] = [...ends];
    };
    const input = (place, word) => h("input", { type: "number", step: field.step || "any", id: `range-${n}-${place}`, "aria-label": `${field.label}: ${word}`, value: String(Number(ends[place].toPrecision(8))), onchange: put(place) });
    return h("div", { class: "field range" }, h("span", {}, field.label), h("div", { class: "ends" }, input(0, "at least"), " to ", input(1, "at most")));
  };

  const ask = async () => {
    go.disabled = true;
    answer.replaceChildren(h("p", { class: "note muted" }, "Querying the explainer; the first query restores the model."));
    try {
      const { run, table, unit } = context;
      const found = await cfbench.post("explain", { run, table, unit, cell: which.value, locked: [...locked], ranges });
      answer.replaceChildren(...found.blocks.map((block) => cfbench.block(block, context)));
    } catch (error) {
      answer.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
    go.disabled = false;
  };

  const numbers = fields.filter((field) => field.kind === "number" && field.low !== null && field.high !== null);
  const go = h("button", { type: "button", id: "again-go", onclick: ask }, "Explain again");
  return h(
    "details",
    { class: "again", id: "again" },
    h("summary", {}, "Constraints, then again"),
    h("p", { class: "note muted" }, "Lock what must not change, and query one explainer anew for this unit. The stored answers above stay as they are."),
    h("div", { class: "proposals", role: "group", "aria-label": "Lock what must not change" }, fields.map(lock)),
    numbers.length ? h("div", { class: "fields" }, numbers.map(range)) : null,
    h("div", { class: "filters" }, h("div", { class: "filter" }, h("label", { for: "again-explainer" }, "explainer"), which), go),
    answer,
  );
};

/* Deletion and insertion curves, which query the model once for each step. */
cfbench.curves = function (context) {
  const { h } = cfbench;
  const drawn = h("div", { "aria-live": "polite" });
  const draw = async (event) => {
    if (!event.target.open || drawn.childElementCount) return;
    drawn.replaceChildren(h("p", { class: "note muted" }, "Querying the model."));
    try {
      const { run, table, unit } = context;
      const found = await cfbench.post("curves", { run, table, unit });
      drawn.replaceChildren(...found.blocks.map((block) => cfbench.block(block, context)));
    } catch (error) {
      drawn.replaceChildren(h("p", { class: "problem", role: "alert" }, error.message));
    }
  };
  return h("details", { class: "again", id: "curves", ontoggle: draw }, h("summary", {}, "Deletion and insertion curves"), drawn);
};
