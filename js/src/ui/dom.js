// Create elements without markup: text is inserted as text, so that labels are never HTML.

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else if (key === "value" || key === "checked") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

const ICONS = {
  turn: "M12 3a9 9 0 1 0 9 9M12 3c3 2.4 4 5.6 4 9s-1 6.600-4 9M12 3c-3 2.400-4 5.600-4 9s1 6.600 4 9M3.300 12H21M17 4l4 0 0 4",
  lasso: "M7.500 15.500C4.800 14.500 3 12.700 3 10.500 3 6.900 7 4 12 4s9 2.900 9 6.500S17 17 12 17c-1 0-1.900-.1-2.700-.3M7.500 15.500a2.200 2.200 0 1 0 1.800 1.200c0 2-1 3.300-3 4.300",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18M3 12h18M12 3c5.300 5 5.300 13 0 18M12 3c-5.300 5-5.300 13 0 18",
  map: "M3 5h18v14H3zM3 12h18M9 5v14M15 5v14",
  theme: "M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18M12 3v18M12 7l6-1.500M12 12h9M12 17l6 1.500",
  picture: "M12 3v12M12 15l-4.500-4.500M12 15l4.500-4.500M4 17v4h16v-4",
  swap: "M4 8h13M17 8l-3-3M17 8l-3 3M20 16H7M7 16l3-3M7 16l3 3",
  plus: "M12 5v14M5 12h14",
  minus: "M5 12h14",
  gear: "M12 9a3 3 0 1 0 0 6 3 3 0 1 0 0-6M12 3v3M12 18v3M3 12h3M18 12h3M5.6 5.6l2.100 2.100M16.300 16.300l2.100 2.100M18.400 5.600l-2.100 2.100M7.700 16.300l-2.100 2.100",
  undo: "M8 5L4 9l4 4M4 9h10a5.500 5.500 0 0 1 0 11H9",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-6-6l-1.500 1.500M14 10a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 6 6l1.500-1.500",
  move: "M9 6v.01M15 6v.01M9 12v.01M15 12v.01M9 18v.01M15 18v.01",
  more: "M5 12v.01M12 12v.01M19 12v.01",
  table: "M4 5h16v14H4zM4 10h16M10 10v9",
  up: "M6 15l6-6 6 6",
  help: "M12 3a9 9 0 1 0 0 18 9 9 0 1 0 0-18M9.300 9.200c.3-3.500 5.600-3.200 5.400 0-.1 2-2.600 2.100-2.700 4.300M12 16.700v.3",
  reset: "M4.500 12A7.500 7.500 0 1 0 7 6.400M7 2.800v3.700h3.700",
  panel: "M4 6h16M4 12h16M4 18h10",
  close: "M6 6l12 12M18 6L6 18",
  unfold: "M5 4v16M5 4c5 0 5 3 9 3M5 20c5 0 5-3 9-3M14 7v10M17 12h4M21 12l-2-2M21 12l-2 2",
};

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function icon(name) {
  return svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A button with an icon; its label is shown on hover and read by screen readers. */
export function iconButton(name, label, onclick, attributes = {}) {
  return h("button", { type: "button", class: "icon-button", title: label, "aria-label": label, onclick, ...attributes }, icon(name));
}

/** A group of buttons, one of which is selected: { element, set(value) }. */
export function choice(label, options, onchoose) {
  const buttons = options.map(({ value, text, iconName, title }) =>
    h(
      "button",
      { type: "button", role: "radio", title, "aria-label": title, "data-value": value, onclick: () => onchoose(value) },
      iconName ? icon(iconName) : null,
      h("span", { text }),
    ),
  );
  const step = (event) => {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = buttons[(buttons.indexOf(event.target) + by + buttons.length) % buttons.length];
    next.focus();
    next.click();
  };
  const element = h("div", { class: "choice", role: "radiogroup", "aria-label": label, onkeydown: step }, ...buttons);
  return {
    element,
    set(value) {
      for (const button of buttons) {
        const chosen = button.dataset.value === value;
        button.setAttribute("aria-checked", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      }
    },
    rename(value, { text, title }) {
      const button = buttons.find(({ dataset }) => dataset.value === value);
      button.title = title;
      button.setAttribute("aria-label", title);
      button.lastChild.textContent = text;
    },
  };
}

/** A labelled slider: { element, input }. */
export function slider(label, { min, max, step, value, oninput, ...rest }) {
  const input = h("input", {
    type: "range", min, max, step, "aria-label": label, oninput: () => oninput(Number(input.value)), ...rest,
  });
  input.value = value;
  return { element: h("label", { class: "slider" }, h("span", { text: label }), input), input };
}

export function checkbox(label, onchange) {
  const input = h("input", { type: "checkbox", onchange: () => onchange(input.checked) });
  return { element: h("label", { class: "check" }, input, h("span", { text: label })), input };
}
