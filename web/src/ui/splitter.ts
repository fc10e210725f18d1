const key = "pollux.side";
const bounds = { least: 160, most: 520, step: 16 } as const;

/** Lets the user set the side bar's width, by dragging or, when it has the focus, by the arrow keys; the width is kept. In CSS pixels. */
export function bindSplitter(handle: HTMLElement, side: HTMLElement): void {
  const set = (width: number) => {
    const wanted = Math.round(Math.max(bounds.least, Math.min(width, bounds.most, innerWidth * 0.5)));
    document.documentElement.style.setProperty("--side-width", `${wanted}px`);
    handle.setAttribute("aria-valuenow", String(wanted));
    localStorage.setItem(key, String(wanted));
  };
  const stored = Number(localStorage.getItem(key));
  handle.setAttribute("aria-valuemin", String(bounds.least));
  handle.setAttribute("aria-valuemax", String(bounds.most));
  handle.setAttribute("aria-valuenow", String(Math.round(side.offsetWidth)));
  if (stored > 0) set(stored);
  handle.addEventListener("keydown", (e) => {
    const by = { ArrowLeft: -bounds.step, ArrowRight: bounds.step }[e.key];
    if (by === undefined) return;
    e.preventDefault();
    set(side.offsetWidth + by);
  });
  handle.addEventListener("pointerdown", (e) => {
    e.preventDefault();
    handle.setPointerCapture(e.pointerId);
    const move = (m: PointerEvent) => set(m.clientX - side.getBoundingClientRect().left);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", () => handle.removeEventListener("pointermove", move), { once: true });
  });
  handle.addEventListener("dblclick", () => {
    localStorage.removeItem(key);
    document.documentElement.style.removeProperty("--side-width");
    handle.setAttribute("aria-valuenow", String(Math.round(side.offsetWidth)));
  });
}
