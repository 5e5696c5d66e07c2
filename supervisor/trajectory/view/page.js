"use strict";
(() => {
  const rows = Array.from(document.querySelectorAll(".row"));
  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const texts = rows.map(row => row.querySelector("summary").textContent.toLowerCase());

  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let n = 0;
    rows.forEach((row, i) => {
      const hit = words.every(word => texts[i].includes(word));
      row.hidden = !hit;
      if (hit) n++;
    });
    shown.textContent = n + " of " + rows.length + " rows";
  };
  const fold = open => {
    for (const row of rows) if (!row.hidden) row.firstElementChild.open = open;
  };
  const move = (from, step) => {
    for (let i = from + step; i >= 0 && i < rows.length; i += step) {
      if (!rows[i].hidden) {
        rows[i].querySelector("summary").focus();
        return true;
      }
    }
    return false;
  };

  filter.addEventListener("input", apply);
  document.getElementById("open").addEventListener("click", () => fold(true));
  document.getElementById("shut").addEventListener("click", () => fold(false));
  document.getElementById("tools").addEventListener("submit", event => event.preventDefault());
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target === filter;
    const down = event.key === "ArrowDown" || event.key === "j" && !typing;
    const up = event.key === "ArrowUp" || event.key === "k" && !typing;
    if (event.key === "/" && !typing) {
      filter.focus();
      event.preventDefault();
    } else if (event.key === "Escape" && typing) {
      filter.value = "";
      apply();
    } else if (down || up) {
      const at = rows.findIndex(row => row.contains(document.activeElement));
      if (move(at, down ? 1 : -1)) event.preventDefault();
    }
  });

  apply();
  document.getElementById("tools").hidden = false;
  document.documentElement.dataset.rows = String(rows.length); // it is ready
})();
