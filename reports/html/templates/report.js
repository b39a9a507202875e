"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const said = document.getElementById("said");
  const plots = [...document.querySelectorAll(".plot")].filter((place) => place.id in figures);
  const drawAll = () => { for (const place of plots) Plots.draw(place, figures[place.id]); };

  for (const group of document.querySelectorAll(".switch")) {
    group.addEventListener("change", (event) => {
      const place = document.getElementById(group.dataset.plot);
      Plots.choose(place, figures[place.id], Number(event.target.value));
      said.textContent = `${place.getAttribute("aria-label")}: ${event.target.parentElement.textContent.trim()}`;
    });
  }

  drawAll();
  document.documentElement.dataset.ready = "yes";
  let resized = 0, width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === width) return;  // a phone's address bar comes and goes
    width = innerWidth;
    clearTimeout(resized);
    resized = setTimeout(drawAll, 100);
  });

  const printed = (width) => { for (const place of plots) place.printed = width; drawAll(); };

  // On paper: as wide as a page, and nothing folded away.
  addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details:not([open])")) { each.open = true; each.dataset.folded = "yes"; }
    printed(680);
  });
  addEventListener("afterprint", () => {
    for (const each of document.querySelectorAll("details[data-folded]")) { each.open = false; delete each.dataset.folded; }
    printed(null);
  });

  async function copy(text) {
    try { await navigator.clipboard.writeText(text); return true; } catch { /* not allowed here: the old way */ }
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "unseen";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const done = await copy(button.parentElement.querySelector("code").textContent);
      button.textContent = done ? "Copied" : "Select it";
      said.textContent = done ? "The code was copied." : "The code could not be copied: select it by hand.";
      button.focus();
      setTimeout(() => { button.textContent = "Copy"; said.textContent = ""; }, 2000);
    });
  }
})();
