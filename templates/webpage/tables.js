"use strict";
// Tables to sort and search. Only some rows are drawn at first, so that thousands cost nothing.
{
  // On a phone a row is half a screen high.
  const FIRST = innerWidth < 760 ? 10 : 25;
  const MORE = 500;
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const { el, prose, link } = Page;

  const names = (list) => {
    if (list === null) return "–";
    if (!list.length) return "–";
    const made = el("span", { class: "names" });
    list.slice(0, 4).forEach((name, number) => {
      made.append(number ? ", " : "", Page.name(name));
    });
    if (list.length > 4) {
      const rest = el("span", { hidden: true }, ", " + list.slice(4).join(", "));
      const more = el(
        "button",
        {
          class: "more",
          type: "button",
          onclick: () => {
            rest.hidden = false;
            more.remove();
          },
        },
        ` and ${list.length - 4} more`,
      );
      made.append(more, rest);
    }
    return made;
  };

  /** A text, and behind a fold the other places of which the same rule says something. */
  const found = ([text, others]) => {
    const made = document.createDocumentFragment();
    made.append(prose(text));
    if (!others.length) return made;
    const list = el("ul");
    for (const [where, url, told] of others) {
      const item = el("li");
      item.append(link(Page.name(where), url), " ", prose(told));
      list.append(item);
    }
    made.append(el("details", { class: "others" }, el("summary", {}, `${Page.number(others.length)} more`), list));
    return made;
  };

  const draw = {
    text: (value) => prose(value ?? ""),
    found,
    name: ([text, url, note]) => {
      const made = document.createDocumentFragment();
      made.append(link(Page.name(text), url));
      if (note) made.append(el("span", { class: "note" }, Page.name(note)));
      return made;
    },
    rule: (id) =>
      Page.rules.has(id)
        ? el("a", { href: `#${Page.anchor("rule", id)}`, class: "rule" }, id)
        : el("span", { class: "rule" }, id),
    number: (value) => Page.number(value),
    value: ([text]) => text,
    chip: (value) => Page.chip(value),
    names,
    strip: (value) => Page.strip(value),
    bars: (value) => Page.bars(value),
    diff: (model) =>
      model === null ? "" : el("a", { href: `#${Page.anchor("diff", model)}` }, "diff"),
  };

  // What a cell is sorted by; undefined is below all others.
  const weight = {
    text: (value) => value || undefined,
    found: ([text]) => text || undefined,
    name: ([text]) => text,
    rule: (id) => id,
    number: (value) => value ?? undefined,
    value: ([, number]) => number ?? undefined,
    chip: ([, , rank]) => rank,
    names: (list) => (list === null ? undefined : list.length),
    strip: () => 0,
    bars: (bars) => (bars.length ? (bars[0][1] ?? undefined) : undefined),
    diff: (model) => (model === null ? undefined : 0),
  };
  const FALLING = new Set(["number", "value", "names", "bars"]);

  const compare = (one, other) => {
    if (one === undefined || other === undefined)
      return (one === undefined) - (other === undefined);
    return typeof one === "number" && typeof other === "number"
      ? one - other
      : collator.compare(one, other);
  };

  /** The text of a row that a search looks at. */
  const said = (row) => JSON.stringify(row).toLowerCase();

  Page.table = (part) => {
    const { columns, rows } = part;
    const texts = new Array(rows.length);
    let order = rows.map((_, index) => index);
    let found = order;
    let shown = FIRST;
    let sorted = { column: -1, sign: 1 };

    const body = el("tbody");
    const status = el("p", { class: "faint status", role: "status" });
    const more = el("button", { type: "button", class: "plain" });
    more.addEventListener("click", () => {
      shown += MORE;
      fill();
    });

    const fill = () => {
      const made = document.createDocumentFragment();
      for (const index of found.slice(0, shown)) {
        const row = el("tr");
        columns.forEach(([label, kind], at) => {
          const cell = el("td", { class: `k-${kind}`, "data-label": label });
          cell.append(draw[kind](rows[index][at]));
          row.append(cell);
        });
        made.append(row);
      }
      body.replaceChildren(made);
      const left = found.length - Math.min(shown, found.length);
      more.hidden = left === 0;
      more.textContent = `Show ${Math.min(left, MORE)} more of ${Page.number(left)}`;
      status.hidden = found.length === rows.length && left === 0;
      status.textContent =
        found.length === rows.length
          ? `${Page.number(Math.min(shown, found.length))} of ${Page.count(rows.length, "row")}`
          : `${Page.number(found.length)} of ${Page.count(rows.length, "row")} match`;
    };

    const heads = columns.map(([label, kind], at) => {
      if (kind === "strip") return el("th", { scope: "col", class: `k-${kind}` }, label);
      const button = el("button", { type: "button" }, label);
      const head = el("th", { scope: "col", class: `k-${kind}`, "aria-sort": "none" }, button);
      button.addEventListener("click", () => {
        const again = sorted.column === at;
        sorted = { column: at, sign: again ? -sorted.sign : FALLING.has(kind) ? -1 : 1 };
        const keys = rows.map((row) => weight[kind](row[at]));
        order = rows.map((_, index) => index);
        order.sort((a, b) => {
          const unknown = (keys[a] === undefined) - (keys[b] === undefined);
          return unknown || sorted.sign * compare(keys[a], keys[b]) || a - b;
        });
        heads.forEach((other) => {
          if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        });
        head.setAttribute("aria-sort", sorted.sign > 0 ? "ascending" : "descending");
        filter(Page.words);
      });
      return head;
    });

    const filter = (words) => {
      found = words.length
        ? order.filter((index) => Page.matches((texts[index] ??= said(rows[index])), words))
        : order;
      shown = Math.max(shown, FIRST);
      fill();
      made.classList.toggle("nothing", found.length === 0);
    };
    Page.searching.push(filter);

    const table = el(
      "table",
      { class: `t-${part.key}` },
      el("thead", {}, el("tr", {}, ...heads)),
      body,
    );
    const made = el(
      "div",
      { class: "tablepart" },
      part.title ? el("h3", {}, prose(part.title)) : null,
      part.note ? el("p", { class: "faint" }, prose(part.note)) : null,
      part.key === "building" ? Page.stripLegend() : null,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": part.title || part.key }, table),
      status,
      more,
    );
    fill();
    return made;
  };
}
