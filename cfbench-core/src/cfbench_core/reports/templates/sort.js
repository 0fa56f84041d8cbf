<script>
// Sorts a table by the clicked column: controls stay below, rows without a number last.
document.querySelectorAll("table.results thead button").forEach(button => button.addEventListener("click", () => {
  const head = button.closest("th"), row = head.parentElement, place = [...row.children].indexOf(head);
  const ascending = head.getAttribute("aria-sort") !== "ascending";
  row.querySelectorAll("th").forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const value = line => (line.children[place] && line.children[place].dataset.value) || "";
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = place ? Number(x) - Number(y) : x.localeCompare(y);
    return ascending ? order : -order;
  };
  row.closest("table").querySelectorAll("tbody").forEach(body => body.append(...[...body.rows].sort(compare)));
}));
// A link to a group that is closed opens it.
const reveal = () => { const group = location.hash && document.getElementById(location.hash.slice(1)); if (group && group.tagName === "DETAILS") group.open = true; };
addEventListener("hashchange", reveal);
reveal();
addEventListener("beforeprint", () => document.querySelectorAll("details.group, details.questions").forEach(d => { d.open = true; }));
</script>
