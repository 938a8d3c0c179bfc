"use strict";
// Tables sort and filter; without this script they are plain tables.
for (const table of document.querySelectorAll("table.data")) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headings = [...table.tHead.rows[0].cells];

  const value = (row, column) => {
    const cell = row.cells[column];
    const number = cell.dataset.number;
    return number === undefined ? cell.textContent : Number(number);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? 1 : -1;
    return a.localeCompare(b);
  };
  const sort = (column) => {
    const upwards = headings[column].getAttribute("aria-sort") === "descending";
    headings.forEach((heading) => heading.removeAttribute("aria-sort"));
    headings[column].setAttribute("aria-sort", upwards ? "ascending" : "descending");
    rows.sort((a, b) => (upwards ? 1 : -1) * compare(value(a, column), value(b, column)));
    body.append(...rows);
  };
  headings.forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = heading.textContent;
    button.addEventListener("click", () => sort(column));
    heading.replaceChildren(button);
  });

  const label = document.createElement("label");
  const input = document.createElement("input");
  const count = document.createElement("span");
  input.type = "search";
  count.setAttribute("role", "status");
  label.append("Show rows with ", input);
  input.addEventListener("input", () => {
    const wanted = input.value.toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const left = rows.filter((row) => !row.hidden).length;
    count.textContent = wanted ? `${left} of ${rows.length} rows` : "";
  });
  const filter = document.createElement("div");
  filter.className = "filter";
  filter.append(label, count);
  table.parentElement.before(filter);
}
