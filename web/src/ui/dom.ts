/** What an element may be given at its making: attributes, `on…` listeners, `class`, `text`, `testid`. */
export type Props = Record<string, string | number | boolean | null | undefined | ((e: never) => void)>;

/** Makes an element. `true` sets an empty attribute; `false`, `null` and `undefined` set none; a function is a listener for the event after `on`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props: Props = {},
  ...children: (Node | string | null | undefined | false)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else if (name === "text") element.textContent = String(value);
    else if (name === "testid") element.dataset.testid = String(value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}

/** The element of the page's fixed markup with this id. */
export function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`index.html has no element #${id}`);
  return element;
}

const paths: Record<string, string> = {
  chevron: "M6 4l4 4-4 4",
  close: "M4.5 4.5l7 7m0-7l-7 7",
  plus: "M8 3.5v9M3.5 8h9",
  folderPlus: "M2 4.5h4l1.5 1.5H14v7H2zM8 7.5v4M6 9.5h4",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2.5V5h-2.5",
  eye: "M1.5 8S4 4 8 4s6.5 4 6.5 4S12 12 8 12 1.5 8 1.5 8zM8 6.5a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3z",
  check: "M3 8.5l3.2 3.2L13 5",
  undo: "M3 6.5h6.5a3.5 3.5 0 0 1 0 7H6M5.5 4L3 6.5 5.5 9",
  up: "M8 13V3.5M4 7l4-4 4 4",
  down: "M8 3v9.5M4 9l4 4 4-4",
  history: "M2.5 8A5.5 5.5 0 1 0 4 4.2M2.5 2.5v3h3M8 5v3.2l2.2 1.4",
  fold: "M3 5.5h10M3 10.5h10M6 2l2 2 2-2M6 14l2-2 2 2",
  split: "M2 3h12v10H2zM8 3v10",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  theme: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  help: "M6 6a2 2 0 1 1 2.8 1.8c-.6.3-.8.7-.8 1.4M8 11.7v.05",
  search: "M7 2.8a4.2 4.2 0 1 1 0 8.4 4.2 4.2 0 0 1 0-8.4zM10.2 10.2l3.3 3.3",
  side: "M2 3h12v10H2zM6 3v10",
  dot: "M8 8h.01",
};

/** One of the page's own line icons, hidden from screen readers. */
export function icon(name: keyof typeof paths & string): SVGSVGElement {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `icon icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(ns, "path");
  path.setAttribute("d", paths[name] ?? "");
  svg.append(path);
  return svg;
}

/** A button that shows an icon alone; `label` is its name and, with the keys, its tooltip. */
export function iconButton(name: string, label: string, testid: string, onclick: () => void, keys = ""): HTMLButtonElement {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: keys ? `${label} (${keys})` : label, testid, onclick }, icon(name));
}

/** Whether this is an Apple machine, where Cmd takes the place of Ctrl. */
export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");

/** Writes a key combination as the platform's keyboards do: "Mod-s" is "Ctrl+S" or "⌘S". */
export function keyName(keys: string): string {
  return keys
    .split("-")
    .map((k) => {
      if (k === "Mod") return isMac ? "⌘" : "Ctrl";
      if (k === "Alt") return isMac ? "⌥" : "Alt";
      return k.length === 1 ? k.toUpperCase() : k.replace("Arrow", "");
    })
    .join(isMac ? "" : "+");
}
