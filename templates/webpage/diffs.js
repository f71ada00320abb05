"use strict";
// Unified diffs side by side, with the words that differ inside of a line.
{
  const { el } = Page;
  const LONGEST = 1500;
  const OPEN_AT_FIRST = 4;
  const FIRST = 200;

  /** Rows of [old number, old text, new number, new text]; a text is null where there is none. */
  const sides = (text) => {
    const rows = [];
    let [left, right, gone, come] = [1, 1, [], []];
    const flush = () => {
      for (let at = 0; at < Math.max(gone.length, come.length); at++)
        rows.push([
          at < gone.length ? left++ : null,
          gone[at] ?? null,
          at < come.length ? right++ : null,
          come[at] ?? null,
        ]);
      [gone, come] = [[], []];
    };
    for (const line of text.split("\n")) {
      const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
      if (hunk) {
        flush();
        [left, right] = [Number(hunk[1]), Number(hunk[2])];
        rows.push(null);
      } else if (line.startsWith("-")) {
        if (come.length) flush();
        gone.push(line.slice(1));
      } else if (line.startsWith("+")) come.push(line.slice(1));
      else {
        flush();
        if (!line.startsWith("\\")) rows.push([left++, line.slice(1), right++, line.slice(1)]);
      }
    }
    flush();
    return rows[0] === null ? rows.slice(1) : rows;
  };

  /** One side of a changed line, with what differs marked. */
  const marked = (words, tag) => {
    const made = document.createDocumentFragment();
    for (const word of words) {
      if (tag === "del" ? word.added : word.removed) continue;
      made.append(word.added || word.removed ? el(tag, {}, word.value) : word.value);
    }
    return made;
  };

  const cells = ([oldAt, before, newAt, after]) => {
    const same = before === after;
    let [left, right] = [before ?? "", after ?? ""];
    if (!same && before !== null && after !== null && before.length + after.length < LONGEST) {
      const words = Diff.diffWordsWithSpace(before, after);
      [left, right] = [marked(words, "del"), marked(words, "ins")];
    }
    const look = (text, kind) => (same ? "same" : text === null ? "none" : kind);
    return el(
      "tr",
      { class: same ? "same" : "changed" },
      el("td", { class: "at" }, oldAt === null ? "" : String(oldAt)),
      el("td", { class: `code ${look(before, "gone")}` }, left),
      el("td", { class: "at" }, newAt === null ? "" : String(newAt)),
      el("td", { class: `code ${look(after, "come")}` }, right),
    );
  };

  const table = (text, name) => {
    const rows = sides(text);
    const added = rows.every((row) => row !== null && row[0] === null);
    const removed = rows.every((row) => row !== null && row[2] === null);
    return el(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": `Before and after: ${name}` },
      el(
        "table",
        { class: added ? "sides added" : removed ? "sides removed" : "sides" },
        el(
          "tbody",
          {},
          ...rows.map((row) =>
            row === null ? el("tr", {}, el("td", { class: "hunk", colspan: "4" }, "⋯")) : cells(row),
          ),
        ),
      ),
    );
  };

  const one = ([model, change, text, url], opened) => {
    const lines = text.split("\n");
    const plus = lines.filter((line) => line.startsWith("+")).length;
    const minus = lines.filter((line) => line.startsWith("-")).length;
    const made = el(
      "details",
      { class: "diff", id: Page.anchor("diff", model), open: opened },
      el(
        "summary",
        {},
        Page.name(model),
        Page.chip(change),
        el("span", { class: "plus" }, `+${plus}`),
        el("span", { class: "minus" }, `−${minus}`),
      ),
    );
    const fill = () => {
      if (made.childElementCount > 1) return;
      if (url) made.append(el("p", { class: "faint" }, Page.link("the file at the reviewed commit", url)));
      made.append(table(text, Array.isArray(model) ? model[0] : model));
    };
    made.addEventListener("toggle", () => made.open && fill());
    if (opened) fill();
    return made;
  };

  Page.diffs = (part) => {
    const few = part.diffs.length <= OPEN_AT_FIRST;
    const made = el("div", { class: "diffs" });
    const drawn = new Map();
    const get = (diff) => {
      if (!drawn.has(diff)) drawn.set(diff, one(diff, few));
      return drawn.get(diff);
    };
    const texts = new Map();
    const text = (diff) => {
      if (!texts.has(diff)) texts.set(diff, `${diff[0]} ${diff[1][1]} ${diff[2]}`.toLowerCase());
      return texts.get(diff);
    };
    const more = el("p", { class: "faint" });
    const fill = (words) => {
      const found = words.length
        ? part.diffs.filter((diff) => Page.matches(text(diff), words))
        : part.diffs;
      made.replaceChildren(...found.slice(0, FIRST).map(get), more);
      const left = found.length - FIRST;
      more.textContent = found.length
        ? left > 0
          ? `and ${Page.number(left)} more: search for a model to see its diff`
          : ""
        : "No diff matches.";
    };
    Page.searching.push(fill);
    // A link to a diff that is not drawn yet draws it.
    Page.openDiff = (id) => {
      const diff = part.diffs.find(([model]) => Page.anchor("diff", model) === id);
      if (!diff) return null;
      const shown = get(diff);
      if (!shown.isConnected) made.prepend(shown);
      shown.open = true;
      return shown;
    };
    fill([]);
    return made;
  };
}
