"use strict";
// What the other scripts share. All data is written as text: nothing here parses markup.
const Page = {};

{
  const SVG = "http://www.w3.org/2000/svg";

  /** An element. `attributes` are ours; an address is taken only where it leads to the web. */
  Page.el = (tag, attributes = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (name === "onclick" || name === "oninput" || name === "onkeydown" || name === "ontoggle")
        made.addEventListener(name.slice(2), value);
      else made.setAttribute(name, value === true ? "" : value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };

  Page.svg = (tag, attributes = {}, ...children) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes))
      if (value !== null && value !== undefined) made.setAttribute(name, value);
    made.append(...children);
    return made;
  };

  /** `text` with the text between backticks as code. */
  Page.prose = (text) => {
    const made = document.createDocumentFragment();
    String(text ?? "").split(/`([^`]+)`/).forEach((piece, number) => {
      if (piece) made.append(number % 2 ? Page.code(piece) : piece);
    });
    return made;
  };

  /** Code that may be broken behind dots, slashes and underscores; elsewhere if no line holds it. */
  Page.code = (text, attributes = {}) => {
    const made = Page.el("code", attributes);
    for (const piece of text.split(/(?<=[._/])/)) made.append(piece, Page.el("wbr"));
    return made;
  };
  Page.name = (text) => Page.code(text, { class: "name" });

  /** A link to the web in a tab of its own; only the label where `url` is anything else. */
  Page.link = (label, url) =>
    typeof url === "string" && /^https?:\/\//.test(url)
      ? Page.el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, label)
      : label;

  Page.chip = ([key, label]) => Page.el("span", { class: `chip chip-${key}` }, label);

  Page.number = (value) =>
    value === null || value === undefined ? "–" : value.toLocaleString("en-US");

  /** "1 model", "2 models". */
  Page.count = (amount, noun) => `${Page.number(amount)} ${noun}${amount === 1 ? "" : "s"}`;

  /** An id for an address inside of the page. */
  Page.anchor = (prefix, name) => `${prefix}-${encodeURIComponent(name)}`;

  // Who wants to know what is searched for: functions of the words in lower case.
  Page.searching = [];
  Page.search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    for (const listener of Page.searching) listener(words);
  };
  Page.matches = (text, words) => words.every((word) => text.includes(word));

  /** Runs `action` at most once for each picture that the browser draws. */
  Page.framed = (action) => {
    let waiting = false;
    return () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        action();
      });
    };
  };
}
