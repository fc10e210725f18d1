import type { App } from "./app";
import { modalIsOpen } from "./ui/dialogs";
import { byId, isMac } from "./ui/dom";
import { showHelp } from "./ui/help";

/** Where the side bar has no room beside the rest, it lies over it; the style sheet has the same bound. */
const narrow = matchMedia("(max-width: 700px)");

function showSide(shown: boolean): void {
  if (!shown && byId("side").contains(document.activeElement)) byId("toggle-side").focus();
  document.body.classList.toggle("side-hidden", !shown);
  byId("toggle-side").setAttribute("aria-expanded", String(shown));
}

/** Shows or hides the side bar. */
export function toggleSide(): void {
  showSide(document.body.classList.contains("side-hidden"));
}

/** Hides the side bar in a narrow window until it is asked for, and again once something was chosen in it. */
export function bindSide(app: App): void {
  const fit = () => showSide(!narrow.matches);
  const done = () => narrow.matches && showSide(false);
  narrow.addEventListener("change", fit);
  fit();
  app.tree.chosen.on(({ keep }) => !keep && done());
  byId("side").addEventListener("click", (e) => e.target instanceof Element && e.target.closest(".queue-item, #open-history, #open-quick") && done());
  byId("side").addEventListener("keydown", (e) => e.key === "Escape" && !e.defaultPrevented && done());
}

/** Goes to the file tree, which may have to be shown first. */
function goToTree(app: App): void {
  showSide(true);
  app.tree.focus();
}

/** The parts of the page that F6 goes through. */
const parts = ["tree", "tabs", "panes", "status"];

function nextPart(back: boolean): void {
  const at = parts.findIndex((id) => byId(id).contains(document.activeElement));
  for (let i = 1; i <= parts.length; i++) {
    const part = byId(parts[(at + (back ? -i : i) + parts.length * 2) % parts.length] ?? "panes");
    const target = [...part.querySelectorAll<HTMLElement>('[tabindex="0"], [contenteditable="true"], button:not([tabindex="-1"]):not(:disabled)')].find((e) => e.offsetParent !== null);
    if (!target) continue;
    target.focus();
    return;
  }
}

function commandOf(app: App, e: KeyboardEvent): (() => void) | null {
  const mod = isMac ? e.metaKey : e.ctrlKey;
  const key = e.key.toLowerCase();
  if (e.key === "F1") return () => void showHelp();
  if (e.key === "F6") return () => nextPart(e.shiftKey);
  if (e.key === "F9") return () => void app.review.step(e.shiftKey ? -1 : 1);
  if (mod && e.shiftKey && key === "e") return () => goToTree(app);
  if (mod && !e.shiftKey && !e.altKey) {
    if (key === "s") return () => app.save();
    if (key === "p") return () => void app.quickOpen();
    if (key === "b") return toggleSide;
  }
  if (e.altKey && !mod) {
    if (e.code === "KeyW") return () => app.closeShown();
    if (e.code === "KeyP") return () => app.pause();
    if (e.key === "PageDown") return () => app.stepTab(1);
    if (e.key === "PageUp") return () => app.stepTab(-1);
  }
  const inText = e.target instanceof HTMLElement && (e.target.isContentEditable || e.target.matches("input, textarea"));
  if (e.key === "?" && !inText && !mod && !e.altKey) return () => void showHelp();
  return null;
}

/** Gives the page its keys. They are heard first, since editors and browsers bind some of them. */
export function bindKeys(app: App): void {
  document.addEventListener(
    "keydown",
    (e) => {
      if (e.isComposing || modalIsOpen()) return;
      const run = commandOf(app, e);
      if (!run) return;
      e.preventDefault();
      e.stopPropagation();
      run();
    },
    true,
  );
}
