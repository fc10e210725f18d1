import { byId, h } from "./dom";

/** One line of a menu; a line without `run` is a heading. */
export interface MenuItem {
  label: string;
  run?: () => void;
  testid?: string;
  keys?: string;
  disabled?: boolean;
}

/** Opens a menu below an element, or at a point, with the keyboard on its first item. Esc, Tab and a click elsewhere close it and give the focus back. */
export function openMenu(label: string, items: MenuItem[], at: HTMLElement | { x: number; y: number }): void {
  const before = document.activeElement;
  const menu = h("div", { role: "menu", class: "menu", "aria-label": label, popover: "manual", testid: "menu" });
  const entries: HTMLElement[] = [];
  for (const item of items) {
    if (!item.run) {
      menu.append(h("div", { class: "menu-heading", role: "presentation", text: item.label }));
      continue;
    }
    const entry = h(
      "button",
      { type: "button", role: "menuitem", tabindex: -1, "aria-disabled": item.disabled ? "true" : null, testid: item.testid },
      h("span", { text: item.label }),
      item.keys ? h("kbd", { text: item.keys }) : null,
    );
    entry.addEventListener("click", () => {
      if (item.disabled) return;
      close(true);
      item.run?.();
    });
    entries.push(entry);
    menu.append(entry);
  }
  const outside = (e: Event) => {
    if (e.target instanceof Node && !menu.contains(e.target)) close(false);
  };
  const close = (restore: boolean) => {
    document.removeEventListener("pointerdown", outside, true);
    if (!menu.isConnected) return;
    menu.remove();
    if (restore && before instanceof HTMLElement && before.isConnected) before.focus();
  };
  menu.addEventListener("keydown", (e) => {
    const now = entries.indexOf(document.activeElement as HTMLElement);
    const step = { ArrowDown: now + 1, ArrowUp: now - 1 + entries.length, Home: 0, End: entries.length - 1 }[e.key];
    if (step !== undefined) entries[step % entries.length]?.focus();
    else if (e.key === "Escape" || e.key === "Tab") close(true);
    else return;
    e.preventDefault();
    e.stopPropagation();
  });
  byId("main").append(menu); // in a landmark; as a popover it is drawn above everything all the same
  menu.showPopover();
  place(menu, at);
  entries[0]?.focus();
  document.addEventListener("pointerdown", outside, true);
}

function place(menu: HTMLElement, at: HTMLElement | { x: number; y: number }): void {
  const box = menu.getBoundingClientRect();
  const anchor = at instanceof HTMLElement ? at.getBoundingClientRect() : null;
  let x = anchor ? anchor.left : (at as { x: number }).x;
  let y = anchor ? anchor.bottom + 4 : (at as { y: number }).y;
  if (anchor && x + box.width > innerWidth - 8) x = anchor.right - box.width;
  if (y + box.height > innerHeight - 8) y = Math.max(8, (anchor ? anchor.top - 4 : y) - box.height);
  x = Math.max(8, Math.min(x, innerWidth - box.width - 8));
  menu.style.left = `${x}px`;
  menu.style.top = `${y}px`;
}
