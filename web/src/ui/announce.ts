import { byId, h } from "./dom";

/** Says a sentence to screen readers; `urgent` interrupts what they are saying. */
export function announce(sentence: string, urgent = false): void {
  const region = byId(urgent ? "live-urgent" : "live");
  // A new node each time: the same sentence twice is still two announcements.
  region.replaceChildren(h("p", { text: sentence }));
}

/** What a note may offer besides its text; `sticky` notes stay until dismissed or acted on. */
export interface NoteOptions {
  action?: string;
  onAction?: () => void;
  sticky?: boolean;
  kind?: "info" | "problem" | "proposal";
}

const maxNotes = 4;

/** Takes a note away after a while, but not while somebody points at it or has the keyboard in it. */
function fade(element: HTMLElement, dismiss: () => void, ms: number): void {
  let timer = window.setTimeout(dismiss, ms);
  const stay = () => window.clearTimeout(timer);
  const go = () => {
    stay();
    if (!element.matches(":hover, :focus-within")) timer = window.setTimeout(dismiss, ms / 2);
  };
  for (const event of ["pointerenter", "focusin"]) element.addEventListener(event, stay);
  for (const event of ["pointerleave", "focusout"]) element.addEventListener(event, () => window.setTimeout(go));
}

/** Shows a short note in the corner and announces it; it leaves by itself after a while. Returns the function that takes it away. */
export function note(text: string, options: NoteOptions = {}): () => void {
  const shelf = byId("notes");
  const dismiss = () => element.remove();
  const element = h(
    "div",
    { class: `note note-${options.kind ?? "info"}`, testid: "note" },
    h("p", { text }),
    options.action
      ? h("button", { type: "button", class: "link", testid: "note-action", text: options.action, onclick: () => (dismiss(), options.onAction?.()) })
      : null,
    h("button", { type: "button", class: "icon-button", "aria-label": "Dismiss", text: "×", onclick: dismiss }),
  );
  shelf.append(element);
  while (shelf.childElementCount > maxNotes) shelf.firstElementChild?.remove();
  announce(text, options.kind === "problem");
  if (!options.sticky) fade(element, dismiss, options.kind === "problem" ? 12_000 : 6000);
  return dismiss;
}
