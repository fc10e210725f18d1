import { h } from "./dom";

/** One way out of a dialog. */
export interface Choice {
  value: string;
  label: string;
  kind?: "primary" | "danger" | "plain";
}

let count = 0;

/** Opens a modal dialog and gives the focus back to where it was when it closes. Resolves with the dialog's return value; "" when it was dismissed. */
export function modal(dialog: HTMLDialogElement): Promise<string> {
  const before = document.activeElement;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      resolve(dialog.returnValue);
    });
  });
}

/** Whether a modal dialog is open now. */
export function modalIsOpen(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

/** A dialog with a heading that names it. */
export function dialogFrame(title: string, testid: string, ...children: (Node | null)[]): HTMLDialogElement {
  const id = `dialog-${++count}`;
  return h("dialog", { "aria-labelledby": id, testid, class: "dialog" }, h("h2", { id, text: title }), ...children);
}

function buttons(dialog: HTMLDialogElement, choices: Choice[]): HTMLElement {
  return h(
    "div",
    { class: "dialog-buttons" },
    ...choices.map((c) =>
      h("button", {
        type: "button",
        class: `button ${c.kind ?? "plain"}`,
        testid: `choice-${c.value}`,
        text: c.label,
        onclick: () => dialog.close(c.value),
      }),
    ),
  );
}

/** Asks a question with several answers; the last choice is the safe one and has the focus. null when dismissed. */
export async function choose(title: string, message: string, choices: Choice[], testid = "dialog"): Promise<string | null> {
  const dialog = dialogFrame(title, testid, h("p", { text: message }));
  const row = buttons(dialog, choices);
  dialog.append(row);
  const answer = modal(dialog);
  (row.lastElementChild as HTMLElement | null)?.focus();
  return (await answer) || null;
}

/** Asks whether to go on. */
export async function confirm(title: string, message: string, yes: string, kind: "primary" | "danger" = "danger"): Promise<boolean> {
  const choices: Choice[] = [
    { value: "yes", label: yes, kind },
    { value: "no", label: "Cancel" },
  ];
  return (await choose(title, message, choices)) === "yes";
}

/** Asks for a line of text; null when dismissed or left empty. `selectTo` selects that many characters of the initial value. */
export async function prompt(title: string, label: string, initial = "", selectTo = initial.length): Promise<string | null> {
  const input = h("input", { type: "text", value: initial, autocomplete: "off", spellcheck: "false", testid: "prompt-input" });
  const form = h("form", { method: "dialog" }, h("label", {}, h("span", { text: label }), input));
  const dialog = dialogFrame(title, "prompt", form);
  form.append(buttons(dialog, [{ value: "ok", label: "OK", kind: "primary" }, { value: "", label: "Cancel" }]));
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    dialog.close("ok");
  });
  const answer = modal(dialog);
  input.focus();
  input.setSelectionRange(0, selectTo);
  return (await answer) === "ok" && input.value.trim() ? input.value.trim() : null;
}
